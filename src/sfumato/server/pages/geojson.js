// Reads districts and outlines from a GeoJSON file, and finds the district of each cell of a map.
import { UNIT } from "./districts.js"
import { t } from "./messages.js"
/** @typedef {import("./districts.js").Shape} Shape */

/** Limits of the collector. */
const MOST_SHAPES = 1000,
	MOST_DISTRICTS = 200,
	MOST_POINTS = 20000,
	MOST_RING = 10000,
	LONGEST_NAME = 200
/** Largest file that Studio reads, in bytes. */
export const MOST_BYTES = 20 * 2 ** 20
/** Names of the property of a feature that may hold its name, the best first. */
const NAMES = ["name", "title", "label", "district", "gemeinde", "bezirk"]

/** Returns the lines and rings of a geometry. @param {any} geometry @returns {any[]} */
function linesOf(geometry) {
	const { type, coordinates, geometries } = geometry ?? {}
	if (type === "Polygon" || type === "MultiLineString") return coordinates
	if (type === "MultiPolygon") return coordinates.flat()
	if (type === "LineString") return [coordinates]
	return type === "GeometryCollection" ? geometries.flatMap(linesOf) : []
}

/** Returns the name of a feature, or "". @param {any} properties */
function nameOfFeature(properties) {
	const entries = Object.entries(properties ?? {}).filter(
		([, value]) => (typeof value === "string" && value.trim()) || typeof value === "number",
	)
	const rank = (/** @type {string} */ key) =>
		NAMES.includes(key.toLowerCase())
			? NAMES.indexOf(key.toLowerCase())
			: NAMES.some((one) => key.toLowerCase().includes(one))
				? NAMES.length
				: NAMES.length + 1
	const [, name = ""] =
		entries
			.filter(([key, value]) => rank(key) <= NAMES.length || typeof value === "string")
			.sort(([a], [b]) => rank(a) - rank(b))[0] ?? []
	return String(name).trim().slice(0, LONGEST_NAME)
}

/** Reads a GeoJSON file: shapes with names, and their bounds in degrees. @param {string} content */
export function readGeoJson(content) {
	/** @type {any} */
	let document
	try {
		document = JSON.parse(content)
	} catch {
		throw new Error(t("This file is not GeoJSON: it is not valid JSON."))
	}
	const features =
		document?.type === "FeatureCollection"
			? document.features
			: document?.type === "Feature"
				? [document]
				: document?.type
					? [{ geometry: document }]
					: null
	if (!Array.isArray(features)) throw new Error(t("This file is not GeoJSON: it has no features."))
	const isPoint = (/** @type {any} */ point) =>
		Array.isArray(point) && Number.isFinite(point[0]) && Number.isFinite(point[1])
	/** @type {{ name: string, lines: number[][][] }[]} */
	let shapes
	try {
		shapes = features
			.map((one) => ({
				name: nameOfFeature(one?.properties),
				lines: linesOf(one?.geometry)
					.map((line) => line.filter(isPoint))
					.filter((line) => line.length > 1),
			}))
			.filter(({ lines }) => lines.length)
	} catch {
		throw new Error(t("This file is not GeoJSON: a geometry has no coordinates."))
	}
	if (!shapes.length) throw new Error(t("This file has no polygons or lines."))
	if (shapes.length > MOST_SHAPES)
		throw new Error(
			t("This file has {number} shapes; a map has at most {most}.", { number: shapes.length, most: MOST_SHAPES }),
		)
	const points = shapes.flatMap(({ lines }) => lines.flat()),
		[west, south, east, north] = points.reduce(
			([w, a, e, b], [x, y]) => [Math.min(w, x), Math.min(a, y), Math.max(e, x), Math.max(b, y)],
			[Infinity, Infinity, -Infinity, -Infinity],
		)
	if (!(west >= -180 && east <= 180 && south >= -90 && north <= 90))
		throw new Error(t("The coordinates of this file are not degrees. Export it in WGS 84 (EPSG:4326)."))
	if (!(west < east && south < north)) throw new Error(t("The shapes of this file have no area."))
	return { shapes, bounds: { latitude: [south, north], longitude: [west, east] } }
}

/**
 * Distance of a point from a line through two others.
 * @param {number[]} point
 * @param {number[]} from
 * @param {number[]} to
 */
function distance([x, y], [a, b], [c, d]) {
	const length = Math.hypot(c - a, d - b)
	return length ? Math.abs((c - a) * (b - y) - (a - x) * (d - b)) / length : Math.hypot(x - a, y - b)
}

/**
 * Removes points of a line that are closer to the rest than the tolerance (Ramer, Douglas and Peucker).
 * @param {number[][]} line
 * @param {number} tolerance
 */
function simplified(line, tolerance) {
	const kept = new Set([0, line.length - 1]),
		stack = [[0, line.length - 1]]
	for (let range = stack.pop(); range; range = stack.pop()) {
		const [first, last] = range
		let far = -1,
			most = tolerance
		for (let i = first + 1; i < last; i++) {
			const now = distance(line[i], line[first], line[last])
			if (now > most) [far, most] = [i, now]
		}
		if (far < 0) continue
		kept.add(far)
		stack.push([first, far], [far, last])
	}
	return line.filter((_, i) => kept.has(i))
}

/**
 * Returns shapes in the units of a map, with as many points as the collector accepts.
 * @param {{ name: string, lines: number[][][] }[]} shapes
 * @param {number[]} latitude
 * @param {number[]} longitude
 * @returns {Shape[]}
 */
export function placedShapes(shapes, [south, north], [west, east]) {
	const unit = (/** @type {number} */ share) => Math.min(2 * UNIT, Math.max(-UNIT, Math.round(share * UNIT)))
	const all = shapes.map(({ name, lines }) => ({
		...(name && { name }),
		rings: lines.map((line) =>
			line.map(([x, y]) => [unit((x - west) / (east - west)), unit((y - south) / (north - south))]),
		),
	}))
	for (let tolerance = 4; ; tolerance *= 1.6) {
		const result = all.map((shape) => ({ ...shape, rings: shape.rings.map((ring) => simplified(ring, tolerance)) }))
		const rings = result.flatMap((shape) => shape.rings)
		if (
			rings.reduce((sum, ring) => sum + ring.length, 0) <= MOST_POINTS &&
			rings.every((ring) => ring.length <= MOST_RING)
		)
			return result
		if (tolerance > UNIT) throw new Error(t("This file has too many lines. Simplify it first."))
	}
}

/**
 * Whether a point is inside the rings of a shape, by the even-odd rule.
 * @param {number} x
 * @param {number} y
 * @param {number[][][]} rings
 */
function isInside(x, y, rings) {
	let inside = false
	for (const ring of rings) {
		ring.forEach(([a, b], i) => {
			const [c, d] = ring[(i + 1) % ring.length]
			if (b > y !== d > y && x < a + ((y - b) / (d - b)) * (c - a)) inside = !inside
		})
	}
	return inside
}

/**
 * Returns the index of the shape around the centre of each cell, or −1. Row 0 is the southernmost.
 * @param {Shape[]} shapes
 * @param {number} rows
 * @param {number} columns
 */
export function districtsOf(shapes, rows, columns) {
	const cells = Array.from({ length: rows * columns }, (_, i) => [
		((i % columns) + 0.5) * (UNIT / columns),
		(Math.floor(i / columns) + 0.5) * (UNIT / rows),
	])
	const districts = cells.map(([x, y]) => shapes.findIndex(({ rings }) => isInside(x, y, rings)))
	if (new Set(districts).size > MOST_DISTRICTS)
		throw new Error(t("A map has at most {most} districts.", { most: MOST_DISTRICTS }))
	return districts
}

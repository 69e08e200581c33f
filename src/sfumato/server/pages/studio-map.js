// The background of a map in Studio: a GeoJSON file with districts, which the browser reads. The file itself is sent
// nowhere.
import { layer } from "./districts.js"
import { h } from "./dom.js"
import { districtsOf, MOST_BYTES, placedShapes, readGeoJson } from "./geojson.js"
import { t } from "./owners.js"

/**
 * A GeoJSON file in a draft, already simplified.
 * @typedef {{ file: string, lines: { name: string, lines: number[][][] }[] }} Drawing
 */

/** Digits after the point of stored degrees: about a metre. */
const PLACES = 5

/** Returns the background of a map for the collector, or null. @param {any} question */
export function statedBackground({ kind, drawing, latitude, longitude, rows, columns }) {
	if (kind !== "grid" || !drawing) return null
	const shapes = placedShapes(drawing.lines, latitude, longitude)
	return { shapes, districts: districtsOf(shapes, rows, columns) }
}

/** Creates the layer of the background over the cells in Studio, or null. @param {any} question */
export const studioLayer = (question) => layer(statedBackground(question), question.rows, question.columns)

/**
 * Reads a file into a question, and sets the coordinates of the map to the bounds of its shapes.
 * @param {any} current
 * @param {File} file
 */
async function readFile(current, file) {
	if (file.size > MOST_BYTES) throw new Error(t("This file is larger than 20 MB. Simplify it first."))
	const { shapes, bounds } = readGeoJson(await file.text()),
		{ latitude, longitude } = bounds
	// Drafts are stored by the browser, so the lines are simplified first.
	const small = placedShapes(shapes, latitude, longitude),
		[south, north] = latitude,
		[west, east] = longitude
	const degrees = (/** @type {number[]} */ [x, y]) =>
		[west + (x / 10000) * (east - west), south + (y / 10000) * (north - south)].map((c) => Number(c.toFixed(PLACES)))
	current.drawing = {
		file: file.name.slice(0, 100),
		lines: small.map(({ name = "", rings }) => ({ name, lines: rings.map((ring) => ring.map(degrees)) })),
	}
	current.latitude = [Number(south.toFixed(PLACES)), Number(north.toFixed(PLACES))]
	current.longitude = [Number(west.toFixed(PLACES)), Number(east.toFixed(PLACES))]
}

/**
 * Creates the inputs for the background of a map.
 * @param {any} current
 * @param {{ field: any, restructured: (change: () => void) => void }} tools
 */
export function backgroundFields(current, { field, restructured }) {
	const fault = h("p", { class: "alarm", role: "alert", hidden: true })
	const input = h("input", {
		type: "file",
		id: "geojson",
		accept: ".geojson,.json,application/geo+json,application/json",
		onchange: async () => {
			const [file] = input.files ?? []
			if (!file) return
			try {
				await readFile(current, file)
				restructured(() => {})
			} catch (error) {
				fault.hidden = false
				fault.textContent = error instanceof Error ? error.message : String(error)
			}
		},
	})
	const { drawing } = current,
		named = drawing
			? drawing.lines.filter((/** @type {any} */ one) => one.name).map((/** @type {any} */ one) => one.name)
			: []
	return h(
		"div",
		{},
		field(
			"geojson",
			t("Background and districts (GeoJSON)"),
			input,
			t(
				"Optional. Your browser reads the file and sends its outlines and names with the survey. No map of other hosts is used.",
			),
		),
		fault,
		drawing &&
			h(
				"p",
				{ id: "districts" },
				h("bdi", {}, drawing.file),
				`: ${t("{count} shapes", { count: drawing.lines.length })}`,
				named.length > 0 && ` (${named.slice(0, 5).join(", ")}${named.length > 5 ? ", …" : ""})`,
				". ",
				t("A cell belongs to the district around its centre. Results have the share of each district."),
			),
		drawing &&
			h(
				"div",
				{ class: "actions" },
				h(
					"button",
					{
						type: "button",
						class: "plain",
						id: "group-districts",
						onclick: () => restructured(() => groupByDistrict(current)),
					},
					t("The district may be revealed, the place within it not"),
				),
				h(
					"button",
					{ type: "button", class: "plain", onclick: () => restructured(() => (current.drawing = undefined)) },
					t("Remove the background"),
				),
			),
	)
}

/** Makes every district a group, and the cells outside all districts another one. @param {any} current */
function groupByDistrict(current) {
	const { districts } = /** @type {any} */ (statedBackground(current)),
		present = [...new Set(districts)]
	current.keep = "blocks"
	current.blocks = present.length
	current.brush = 0
	current.block = Object.fromEntries(
		districts.map((/** @type {number} */ district, /** @type {number} */ x) => [
			JSON.stringify([Math.floor(x / current.columns), x % current.columns]),
			present.indexOf(district),
		]),
	)
}

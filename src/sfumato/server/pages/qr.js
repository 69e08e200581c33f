// QR codes, after ISO/IEC 18004:2015: byte mode, error correction level M, versions 1 to 25, all eight masks. A code of
// level M can be read
// if at most about 15% of it is damaged. Tests compare the matrices with those of other software.
import { h, s } from "./dom.js"

/**
 * Error correction codewords per block, and number of blocks, by version from 1, for level M (table 9 of the standard).
 */
const CHECKS = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26, 26, 28, 28, 28, 28]
const BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16, 17, 17, 18, 20, 21]
/** Bits of level M in the format information (table 12). */
const LEVEL_M = 0
/** Light modules around a code (section 6.3.8). */
const QUIET = 4

/** Powers of the generator of GF(256) modulo x^8 + x^4 + x^3 + x^2 + 1, and their logarithms. */
const POWERS = new Uint8Array(510),
	LOGARITHMS = new Uint8Array(256)
for (let i = 0, value = 1; i < 255; i++, value = value < 128 ? value * 2 : (value * 2) ^ 0x11d) {
	POWERS[i] = POWERS[i + 255] = value
	LOGARITHMS[value] = i
}
const times = (/** @type {number} */ a, /** @type {number} */ b) => (a && b ? POWERS[LOGARITHMS[a] + LOGARITHMS[b]] : 0)

/**
 * Returns the error correction codewords of a block: the remainder of its polynomial (section 7.5).
 * @param {number[]} data
 * @param {number} count
 */
function checksOf(data, count) {
	// The generator is the product of x - α^i, without its leading coefficient.
	let generator = [1]
	for (let i = 0; i < count; i++) {
		const next = [...generator, 0]
		generator.forEach((c, j) => (next[j + 1] ^= times(c, POWERS[i])))
		generator = next
	}
	const rest = new Array(count).fill(0)
	for (const value of data) {
		const factor = value ^ rest.shift()
		rest.push(0)
		generator.slice(1).forEach((c, j) => (rest[j] ^= times(c, factor)))
	}
	return rest
}

/**
 * Returns the remainder of a number with zeros appended, as a polynomial over GF(2).
 * @param {number} value
 * @param {number} divisor
 * @param {number} bits of the remainder
 */
function remainder(value, divisor, bits) {
	let rest = value << bits
	for (let i = 31 - Math.clz32(rest || 1); i >= bits; i--) if ((rest >> i) & 1) rest ^= divisor << (i - bits)
	return rest
}

/** Returns the centres of the alignment patterns in one direction (annex E). @param {number} version */
function alignments(version) {
	if (version === 1) return []
	const count = Math.floor(version / 7) + 2,
		last = 4 * version + 10,
		step = 2 * Math.ceil((last - 6) / (2 * (count - 1)))
	return [6, ...Array.from({ length: count - 1 }, (_, i) => last - step * (count - 2 - i))]
}

/** Returns the number of data and error correction codewords of a version. @param {number} version */
function codewords(version) {
	const centres = alignments(version).length,
		size = 4 * version + 17
	// All modules without finders, timing, alignments (those on the timing lines overlap them), format and version
	// information.
	const modules =
		size * size -
		3 * 64 -
		2 * (size - 16) -
		(centres && 25 * (centres * centres - 3) - 10 * (centres - 2)) -
		31 -
		(version >= 7 ? 36 : 0)
	return Math.floor(modules / 8)
}

/**
 * Returns the codewords of bytes in the order of the symbol: blocks of data and checks, interleaved (sections 7.4 to
 * 7.6).
 * @param {Uint8Array} bytes
 * @param {number} version
 */
function message(bytes, version) {
	const blocks = BLOCKS[version - 1],
		checks = CHECKS[version - 1],
		room = codewords(version) - blocks * checks
	/** @type {number[]} */
	const bits = [],
		put = (/** @type {number} */ value, /** @type {number} */ length) => {
			for (let i = length - 1; i >= 0; i--) bits.push((value >> i) & 1)
		}
	put(4, 4)
	put(bytes.length, version < 10 ? 8 : 16)
	for (const byte of bytes) put(byte, 8)
	put(0, Math.min(4, 8 * room - bits.length))
	put(0, (8 - (bits.length % 8)) % 8)
	for (let pad = 0xec; bits.length < 8 * room; pad ^= 0xec ^ 0x11) put(pad, 8)
	const data = Array.from({ length: room }, (_, i) =>
		bits.slice(8 * i, 8 * i + 8).reduce((byte, bit) => 2 * byte + bit, 0),
	)
	const short = Math.floor(room / blocks),
		long = room % blocks
	let at = 0
	const parts = Array.from({ length: blocks }, (_, i) => {
		const part = data.slice(at, at + short + (i >= blocks - long ? 1 : 0))
		at += part.length
		return part
	})
	const interleave = (/** @type {number[][]} */ lists) =>
		Array.from({ length: Math.max(...lists.map((list) => list.length)) }, (_, i) =>
			lists.flatMap((list) => (i < list.length ? [list[i]] : [])),
		).flat()
	return [...interleave(parts), ...interleave(parts.map((part) => checksOf(part, checks)))]
}

/** Conditions of the masks, by row and column (table 10). @type {((i: number, j: number) => boolean)[]} */
const MASKS = [
	(i, j) => (i + j) % 2 === 0,
	(i) => i % 2 === 0,
	(_, j) => j % 3 === 0,
	(i, j) => (i + j) % 3 === 0,
	(i, j) => (Math.floor(i / 2) + Math.floor(j / 3)) % 2 === 0,
	(i, j) => ((i * j) % 2) + ((i * j) % 3) === 0,
	(i, j) => (((i * j) % 2) + ((i * j) % 3)) % 2 === 0,
	(i, j) => (((i + j) % 2) + ((i * j) % 3)) % 2 === 0,
]

/**
 * Returns the modules of a version with its function patterns; undefined where data go.
 * @param {number} version
 * @returns {(boolean | undefined)[][]}
 */
function patterns(version) {
	const size = 4 * version + 17,
		grid = Array.from({ length: size }, () => /** @type {(boolean | undefined)[]} */ (new Array(size).fill(undefined)))
	for (const [top, left] of [
		[0, 0],
		[0, size - 7],
		[size - 7, 0],
	]) {
		for (let i = -1; i < 8; i++) {
			for (let j = -1; j < 8; j++) {
				if (grid[top + i]?.length && left + j >= 0 && left + j < size)
					grid[top + i][left + j] =
						Math.min(i, j) >= 0 && Math.max(i, j) < 7 && Math.max(Math.abs(i - 3), Math.abs(j - 3)) !== 2
			}
		}
	}
	const centres = alignments(version),
		last = centres.length - 1
	centres.forEach((row, a) =>
		centres.forEach((column, b) => {
			if ((a === 0 && b === 0) || (a === 0 && b === last) || (a === last && b === 0)) return
			for (let i = -2; i <= 2; i++)
				for (let j = -2; j <= 2; j++) grid[row + i][column + j] = Math.max(Math.abs(i), Math.abs(j)) !== 1
		}),
	)
	for (let i = 8; i < size - 8; i++) grid[6][i] = grid[i][6] = i % 2 === 0
	writeFormat(grid, 0)
	if (version >= 7) {
		const bits = (version << 12) | remainder(version, 0x1f25, 12)
		for (let i = 0; i < 18; i++) {
			const row = Math.floor(i / 3),
				column = size - 11 + (i % 3)
			grid[row][column] = grid[column][row] = !!((bits >> i) & 1)
		}
	}
	return grid
}

/**
 * Writes the format information twice, and the dark module (section 7.9).
 * @param {(boolean | undefined)[][]} grid
 * @param {number} mask
 */
function writeFormat(grid, mask) {
	const size = grid.length,
		given = (LEVEL_M << 3) | mask,
		bits = ((given << 10) | remainder(given, 0x537, 10)) ^ 0x5412
	for (let i = 0; i < 15; i++) {
		const dark = !!((bits >> i) & 1)
		// Once around the upper left finder, and once along the two others.
		if (i < 6) grid[i][8] = dark
		else if (i < 8) grid[i + 1][8] = dark
		else if (i === 8) grid[8][7] = dark
		else grid[8][14 - i] = dark
		if (i < 8) grid[8][size - 1 - i] = dark
		else grid[size - 15 + i][8] = dark
	}
	grid[size - 8][8] = true
}

/**
 * Returns the penalty of a mask: long runs, blocks, patterns like a finder, and an uneven share of dark modules
 * (section 7.8.3).
 * @param {boolean[][]} grid
 */
function penalty(grid) {
	const size = grid.length,
		lines = [...grid, ...grid.map((_, j) => grid.map((row) => row[j]))]
	let sum = 0,
		dark = 0
	for (const line of lines) {
		const word = line.map((one) => (one ? "1" : "0")).join("")
		for (const run of word.match(/0{5,}|1{5,}/g) ?? []) sum += run.length - 2
		for (let at = word.indexOf("1011101"); at >= 0; at = word.indexOf("1011101", at + 1)) {
			const before = word.slice(Math.max(0, at - 4), at),
				after = word.slice(at + 7, at + 11)
			// The quiet zone around the code is light.
			if (!before.includes("1")) sum += 40
			else if (!after.includes("1")) sum += 40
		}
	}
	grid.forEach((row, i) =>
		row.forEach((one, j) => {
			dark += Number(one)
			if (i + 1 < size && j + 1 < size && row[j + 1] === one && grid[i + 1][j] === one && grid[i + 1][j + 1] === one)
				sum += 3
		}),
	)
	return sum + 10 * Math.floor(Math.abs((20 * dark) / (size * size) - 10))
}

/** Returns the least version with room for this number of bytes, or 0 if there is none. @param {number} length */
export function versionFor(length) {
	return (
		1 +
		CHECKS.findIndex((checks, i) => 8 * (codewords(i + 1) - BLOCKS[i] * checks) >= 4 + (i < 9 ? 8 : 16) + 8 * length)
	)
}

/**
 * Returns the modules of a QR code, true for dark, by rows. Returns null if the content is too long.
 * @param {string} content
 * @param {number} [wanted] the mask; by default, that with the least penalty
 * @returns {boolean[][] | null}
 */
export function qrCode(content, wanted) {
	const bytes = new TextEncoder().encode(content),
		version = versionFor(bytes.length)
	if (!version) return null
	const fixed = patterns(version),
		size = fixed.length,
		words = message(bytes, version)
	/**
	 * Places of the data in order: two columns at a time from the right, upwards and downwards in turn, without the
	 * vertical timing line.
	 * @type {[number, number][]}
	 */
	const places = []
	for (let right = size - 1, up = true; right > 0; right -= 2, up = !up) {
		if (right === 6) right = 5
		for (let n = 0; n < size; n++) {
			const i = up ? size - 1 - n : n
			for (const j of [right, right - 1]) if (fixed[i][j] === undefined) places.push([i, j])
		}
	}
	const masked = (/** @type {number} */ mask) => {
		const grid = fixed.map((row) => [...row])
		places.forEach(([i, j], n) => (grid[i][j] = !!((words[n >> 3] >> (7 - (n & 7))) & 1) !== MASKS[mask](i, j)))
		writeFormat(grid, mask)
		return /** @type {boolean[][]} */ (grid)
	}
	if (wanted !== undefined) return masked(wanted)
	const all = MASKS.map((_, mask) => masked(mask)),
		costs = all.map(penalty)
	return all[costs.indexOf(Math.min(...costs))]
}

/**
 * Draws a QR code: black on white in any colour scheme, because cameras expect it.
 * @param {boolean[][]} code
 * @param {string} about
 */
export function qrPicture(code, about) {
	const size = code.length + 2 * QUIET
	const outline = code
		.flatMap((row, i) => row.flatMap((dark, j) => (dark ? [`M${j + QUIET} ${i + QUIET}h1v1h-1z`] : [])))
		.join("")
	return /** @type {SVGSVGElement} */ (
		s(
			"svg",
			{
				viewBox: `0 0 ${size} ${size}`,
				width: 240,
				height: 240,
				role: "img",
				"aria-label": about,
				"shape-rendering": "crispEdges",
				class: "qr",
			},
			s("rect", { width: size, height: size, fill: "#fff" }),
			s("path", { d: outline, fill: "#000" }),
		)
	)
}

/** Returns a QR code as an SVG file. @param {boolean[][]} code @param {string} about */
export const qrSvg = (code, about) =>
	new Blob([new XMLSerializer().serializeToString(qrPicture(code, about))], { type: "image/svg+xml" })

/**
 * Returns a QR code as a PNG file.
 * @param {boolean[][]} code
 * @param {number} [scale] pixels per module
 * @returns {Promise<Blob>}
 */
export function qrPng(code, scale = 12) {
	const size = (code.length + 2 * QUIET) * scale,
		canvas = h("canvas", { width: size, height: size }),
		context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"))
	context.fillStyle = "#fff"
	context.fillRect(0, 0, size, size)
	context.fillStyle = "#000"
	code.forEach((row, i) =>
		row.forEach((dark, j) => dark && context.fillRect((j + QUIET) * scale, (i + QUIET) * scale, scale, scale)),
	)
	return new Promise((resolve, reject) =>
		canvas.toBlob(
			(blob) =>
				blob ? resolve(blob) : reject(new Error("The browser could not create the image. Try another browser.")),
			"image/png",
		),
	)
}

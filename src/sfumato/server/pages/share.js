// Ways to reach people: the link of a survey, a sentence to send with it, its QR code, and a sheet of one-time links
// for paper.
import { copyable, download, h } from "./dom.js"
import { number, t } from "./messages.js"
import { qrCode, qrPicture, qrPng, qrSvg } from "./qr.js"

/** Maximum codes on one sheet, so that the browser draws it within seconds. */
export const MOST_ON_SHEET = 500

/** Returns a file name of a title. @param {string} title */
const fileName = (title) =>
	title
		.toLowerCase()
		.replace(/[^\p{L}\p{N}]+/gu, "-")
		.replace(/^-|-$/g, "")
		.slice(0, 60) || "survey"

/** Prints only this element: the style sheet hides all others on paper. @param {HTMLElement} element */
function printOnly(element) {
	element.classList.add("only")
	document.body.classList.add("print-only")
	const ended = () => {
		document.body.classList.remove("print-only")
		element.classList.remove("only")
		removeEventListener("afterprint", ended)
	}
	addEventListener("afterprint", ended)
	print()
}

/** Creates the link of a survey with a sentence to send and its QR code. @param {string} link @param {string} title */
export function shareLink(link, title) {
	const code = qrCode(link),
		about = t("QR code of the link to the survey “{title}”", { title })
	const message = t(
		"Please take part in this survey: “{title}”. Before you answer, the page says what your reply can reveal. {link}",
		{ title, link },
	)
	const poster = h(
		"figure",
		{ class: "poster" },
		h(
			"figcaption",
			{},
			h("strong", {}, title),
			h("span", {}, t("Scan the code with the camera of your phone, or open the link.")),
		),
		...(code ? [qrPicture(code, about)] : []),
		h("p", { class: "address" }, link),
	)
	return h(
		"div",
		{ class: "share" },
		copyable(link, t("Link to the survey")),
		h("p", { class: "label" }, t("Text to send")),
		copyable(message, t("Text to send"), true),
		code
			? h(
					"details",
					{},
					h("summary", {}, t("QR code")),
					poster,
					h(
						"div",
						{ class: "actions" },
						h(
							"button",
							{ type: "button", onclick: () => download(`${fileName(title)}-qr.svg`, qrSvg(code, about)) },
							t("Download as SVG"),
						),
						h(
							"button",
							{ type: "button", onclick: async () => download(`${fileName(title)}-qr.png`, await qrPng(code)) },
							t("Download as PNG"),
						),
						h("button", { type: "button", onclick: () => printOnly(poster) }, t("Print a poster")),
					),
				)
			: h("p", { class: "hint" }, t("The link is too long for a QR code. Use fewer questions, or send the link.")),
	)
}

/**
 * Creates a button that prints one-time links as QR codes to cut out, one for each person.
 * @param {string[]} links
 * @param {string} title
 */
export function sheetButton(links, title) {
	const shown = links.slice(0, MOST_ON_SHEET)
	return h(
		"button",
		{
			type: "button",
			class: "print-sheet",
			onclick: () => {
				const sheet = h(
					"section",
					{ class: "sheet", "aria-label": t("Sheet of one-time links") },
					...shown.map((link, i) => {
						const code = qrCode(link),
							about = t("QR code of one-time link {count}", { count: i + 1 })
						return h(
							"figure",
							{},
							h(
								"figcaption",
								{},
								h("strong", {}, title),
								h("span", {}, t("Link {count} of {all}. It counts once.", { count: i + 1, all: links.length })),
							),
							...(code ? [qrPicture(code, about)] : []),
							h("p", { class: "address" }, link),
						)
					}),
				)
				document.body.append(sheet)
				addEventListener("afterprint", () => sheet.remove(), { once: true })
				printOnly(sheet)
			},
		},
		links.length > MOST_ON_SHEET
			? t("Print the first {number} as QR codes", { number: number(MOST_ON_SHEET) })
			: t("Print as QR codes"),
	)
}

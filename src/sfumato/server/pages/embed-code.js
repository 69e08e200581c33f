// The HTML that shows public results in a page of another site.
import { copyable, h } from "./dom.js"
import { t } from "./owners.js"
import { onChoice, queryOf } from "./result-options.js"

const escaped = (/** @type {string} */ value) =>
	value.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** Returns the frame of a collection. @param {{ id: string, title: string }} collection */
function frameOf({ id, title }) {
	const query = queryOf(["method", "level", "sort", "filter"]),
		address = `${location.origin}/c/${id}/embed${query && `?${query}`}`
	return `<iframe src="${escaped(address)}" title="${escaped(t("Results: {title}", { title }))}" width="100%" height="480" loading="lazy"></iframe>`
}

/** Creates the card with the HTML of each question. @param {{ id: string, title: string }[]} collections */
export function embedCard(collections) {
	const fields = collections.map((collection) =>
		copyable(frameOf(collection), t("HTML that shows the results of {title}", { title: collection.title })),
	)
	onChoice(() =>
		fields.forEach((field, i) => Object.assign(field.querySelector("input") ?? {}, { value: frameOf(collections[i]) })),
	)
	return h(
		"section",
		{ class: "card", id: "embed" },
		h("h2", {}, t("Show the results on your site")),
		h(
			"details",
			{},
			h("summary", {}, t("HTML to copy")),
			h(
				"p",
				{ class: "quiet" },
				t(
					"The frame shows the chart with its title, number of answers, method and date, and no controls. It uses no token, so it shows public results only.",
				),
			),
			...fields,
		),
	)
}

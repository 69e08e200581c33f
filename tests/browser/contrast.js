// WCAG 2 contrast of every text with what is behind it, and of the edges of fields: those below AA.
;() => {
	const numbers = (text) => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number)
	const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4)
	const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
	const ratio = (a, b) => {
		const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y)
		return (light + 0.05) / (dark + 0.05)
	}
	const behind = (element) => {
		const patch = element.tagName === "text" && element.parentElement.querySelector(":scope > .patch")
		if (patch) return numbers(getComputedStyle(patch).fill)
		for (let at = element; at; at = at.parentElement) {
			const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor)
			if (a === 1) return [r, g, b]
		}
		return [255, 255, 255]
	}
	const poor = []
	for (const element of document.querySelectorAll("body *")) {
		const style = getComputedStyle(element),
			box = element.getBoundingClientRect()
		if (!box.width || !box.height || style.opacity === "0" || element.disabled) continue
		const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
		const size = parseFloat(style.fontSize),
			large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700)
		const found = ratio(numbers(element.tagName === "text" ? style.fill : style.color), behind(element))
		if (own && found < (large ? 3 : 4.5)) poor.push(`${element.textContent}: ${found}`)
		const field =
			element.matches("input:not([type=range], [type=radio], [type=checkbox]), select, textarea") && !element.readOnly
		if (field && ratio(numbers(style.borderTopColor), behind(element.parentElement)) < 3)
			poor.push(`the edge of ${element.id}`)
	}
	return poor
}

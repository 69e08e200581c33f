// English forms for one thing, and words that are keys of other messages, for owners and readers; owners.js describes the format.
/** @type {Record<string, string>} */
export default {
	closed: "closed",
	results: "results",
	"{count} one-time links are ready, one for each person. Download now: the links are not shown again..one": "1 one-time link is ready. Download now: the link is not shown again.",
	"{count} answers will be deleted. This cannot be undone..one": "1 answer will be deleted. This cannot be undone.",
	"The survey and its {count} answers will be deleted..one": "The survey and its answer will be deleted.",
	"{count} surveys found..one": "1 survey found.",
	"{count} surveys, the newest first. Each question of a survey is listed..one": "1 survey. Each question of a survey is listed.",
}

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
	answer: "answer",
	"answers.one": "answer",
	"{count} answers.one": "1 answer",
	"{count} values are rare: at most {bound}..one": "1 value is rare: at most {bound}.",
	"{count} of {all} differences are clear: with {level} confidence, all intervals together contain the true differences..one": "1 of {all} differences is clear: with {level} confidence, all intervals together contain the true differences.",
	"{count} answers of earlier days are no longer stored by day..one": "1 answer of an earlier day is no longer stored by day.",
}

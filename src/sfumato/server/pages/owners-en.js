// English forms for one thing, and words that are keys of other messages, for owners and readers; owners.js describes
// the format.
/** @type {Record<string, string>} */
export default {
	closed: "closed",
	results: "results",
	"{count} one-time links are ready, one for each person. Download now: the links are not shown again..one":
		"1 one-time link is ready. Download now: the link is not shown again.",
	"{count} answers will be deleted. This cannot be undone..one": "1 answer will be deleted. This cannot be undone.",
	"The survey and its {count} answers will be deleted..one": "The survey and its answer will be deleted.",
	"{count} surveys found..one": "1 survey found.",
	"{count} surveys, the newest first. Each question of a survey is listed..one":
		"1 survey. Each question of a survey is listed.",
	"A device keeps at most {count} stored answers..one": "A device keeps at most 1 stored answer.",
	"A device keeps at most {count} stored answers per person..one": "A device keeps at most 1 stored answer per person.",
	"A device takes up a new answer every {count} waves..one": "A device takes up a new answer in every wave.",
	answer: "answer",
	"answers.one": "answer",
	"released answers.one": "released answer",
	"{count} answers.one": "1 answer",
	"{count} values are rare: at most {bound}..one": "1 value is rare: at most {bound}.",
	"{count} of {all} differences are clear: with {level} confidence, all intervals together contain the true differences..one":
		"1 of {all} differences is clear: with {level} confidence, all intervals together contain the true differences.",
	"{count} answers of earlier days are no longer stored by day..one":
		"1 answer of an earlier day is no longer stored by day.",
	"With {count} people, the mean will be known to about ± {bound} (95% interval), which is {share} of the range..one":
		"With 1 person, the mean will be known to about ± {bound} (95% interval), which is {share} of the range.",
	"With {count} people, the share of people up to each value will be known to about ± {bound} (95% interval)..one":
		"With 1 person, the share of people up to each value will be known to about ± {bound} (95% interval).",
	"With {count} people, the share of each option will be known to about ± {bound} (95% interval)..one":
		"With 1 person, the share of each option will be known to about ± {bound} (95% interval).",
	"With {count} people, the estimated shares will be {term} {bound}. That part of the shares would have to move to other values to be correct..one":
		"With 1 person, the estimated shares will be {term} {bound}. That part of the shares would have to move to other values to be correct.",
	"With {count} people, nothing can be estimated: the expected ± is 100% or more..one":
		"With 1 person, nothing can be estimated: the expected ± is 100% or more.",
	"With {count} people, only shares above about {bound} can be distinguished from 0..one":
		"With 1 person, only shares above about {bound} can be distinguished from 0.",
	"For {error} you need about {count} people..one": "For {error} you need about 1 person.",
	"All randomizers that the planner compared, for {count} people..one":
		"All randomizers that the planner compared, for 1 person.",
	"{what} against the {term}, with {count} people. A lower level hides more..one":
		"{what} against the {term}, with 1 person. A lower level hides more.",
	"With {count} people, no level up to 6 gives ± {bound}..one": "With 1 person, no level up to 6 gives ± {bound}.",
	"With {count} people, the level ε = {level} gives ± {bound} or less..one":
		"With 1 person, the level ε = {level} gives ± {bound} or less.",
	"and {count} more values.one": "and 1 more value",
	"{count} shapes.one": "1 shape",
}

// Follows the results of the collections of a page: by live streams if there are few of them, else by one request after
// the other.
import { ApiError, ask, follow } from "./api.js"

/**
 * Maximum live streams of a page. Browsers open six connections to a host over HTTP/1.1, and other requests need some
 * of them.
 */
const MOST_STREAMS = 3
/** Milliseconds between two requests for the same results. */
const PAUSE = 10000
/** Maximum values of a collection whose estimates are requested; of larger ones, only the number of answers. */
const MOST_VALUES = 10000
const FINAL = ["unauthorized", "not-found", "invalid"]

/**
 * The last request; requests follow each other, so that many questions do not occupy all connections.
 * @type {Promise<void>}
 */
let last = Promise.resolve()

/**
 * Follows the estimates of one of `count` collections of the page until it is stopped.
 * @param {number} count
 * @param {string} id
 * @param {number} values
 * @param {{ method: string, level: string }} options
 * @param {(event: any) => void} onEvent
 * @param {(connected: boolean, error?: ApiError) => void} onState
 * @returns {() => void} a function that stops it
 */
export function watch(count, id, values, { method, level }, onEvent, onState) {
	const query = `method=${method}&level=${level}`
	if (count <= MOST_STREAMS) return follow(`/v1/collections/${id}/live?${query}`, onEvent, onState)
	const path = values > MOST_VALUES ? `/v1/collections/${id}` : `/v1/collections/${id}/estimate?${query}`
	let stopped = false,
		timer = 0
	const request = async () => {
		if (stopped) return
		try {
			const event = await ask(path)
			if (stopped) return
			onState(true)
			onEvent(event)
		} catch (error) {
			if (stopped) return
			const apiError = error instanceof ApiError ? error : undefined
			onState(false, apiError)
			if (apiError && FINAL.includes(apiError.reason)) return
		}
		timer = window.setTimeout(next, PAUSE)
	}
	const next = () => {
		if (document.hidden) timer = window.setTimeout(next, PAUSE)
		else last = last.then(request)
	}
	last = last.then(request)
	return () => {
		stopped = true
		clearTimeout(timer)
	}
}

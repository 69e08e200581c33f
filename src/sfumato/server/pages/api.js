// Requests to the collector. The admin token is stored for this browser tab only.
import { t } from "./messages.js"

const TOKEN_KEY = "sfumato-admin-token"

/** Returns the stored admin token, or "". @returns {string} */
export const adminToken = () => sessionStorage.getItem(TOKEN_KEY) ?? ""

/** Stores the admin token; "" removes it. @param {string} token */
export const keepAdminToken = (token) =>
	token ? sessionStorage.setItem(TOKEN_KEY, token) : sessionStorage.removeItem(TOKEN_KEY)

/** An error response of the collector. */
export class ApiError extends Error {
	/** @param {string} reason @param {string} message */
	constructor(reason, message) {
		super(message)
		this.reason = reason
	}
}

const UNREACHABLE = () => t("The collector cannot be reached. Check your connection and try again.")

/**
 * Sends a request with the admin token, and throws an ApiError for an error response.
 * @param {string} path
 * @param {RequestInit & { body?: any }} options
 */
async function request(path, options) {
	/** @type {Record<string, string>} */
	const headers = { .../** @type {any} */ (options.headers) }
	if (adminToken()) headers.Authorization = `Bearer ${adminToken()}`
	if (options.body) headers["Content-Type"] = "application/json"
	/** @type {Response} */
	let response
	try {
		response = await fetch(path, { ...options, headers, credentials: "omit" })
	} catch {
		throw new ApiError("offline", UNREACHABLE())
	}
	if (response.ok) return response
	const { error } = await response.json().catch(() => ({ error: { reason: "internal", message: response.statusText } }))
	throw new ApiError(error.reason, error.message)
}

/**
 * Stores the reader token of a link (`#token=sfr_…`) and removes it from the address. Other tokens are not taken from
 * links, because the author of a link could
 * make a person act in another name; and a stored token with more rights stays.
 */
export function takeReaderToken() {
	const [, token] = /^#token=(sfr_[\w-]+)$/.exec(location.hash) ?? []
	if (!token) return
	if (!adminToken() || adminToken().startsWith("sfr_")) keepAdminToken(token)
	history.replaceState(null, "", location.pathname + location.search)
}

/**
 * Requests JSON from the collector; with a body, sends the body as JSON.
 * @param {string} path
 * @param {any} [body]
 * @param {string} [method]
 * @returns {Promise<any>}
 */
export async function ask(path, body, method = body === undefined ? "GET" : "POST") {
	const response = await request(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
	return await response.json().catch(() => {
		throw new ApiError("offline", UNREACHABLE())
	})
}

/** Downloads a file of this type from the collector. @param {string} path @param {string} type */
export async function askFile(path, type) {
	return await (await request(path, { headers: { Accept: type } })).blob()
}

/**
 * Receives server-sent events until it is stopped, and reconnects after an interruption. An EventSource cannot send the
 * token.
 * @param {string} path
 * @param {(data: any) => void} onEvent
 * @param {(connected: boolean, error?: ApiError) => void} onState
 * @returns {() => void} a function that stops it
 */
export function follow(path, onEvent, onState) {
	const stop = new AbortController()
	const run = async () => {
		while (!stop.signal.aborted) {
			try {
				const response = await request(path, { signal: stop.signal, headers: { Accept: "text/event-stream" } })
				onState(true)
				await readEvents(response, onEvent)
			} catch (error) {
				if (stop.signal.aborted) return
				const apiError = error instanceof ApiError ? error : undefined
				onState(false, apiError)
				if (apiError && ["unauthorized", "not-found", "invalid"].includes(apiError.reason)) return
			}
			await new Promise((resolve) => setTimeout(resolve, 2000))
		}
	}
	run()
	return () => stop.abort()
}

/** Parses the events of a response. @param {Response} response @param {(data: any) => void} onEvent */
async function readEvents(response, onEvent) {
	const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader(),
		decoder = new TextDecoder()
	for (let rest = "", part = await reader.read(); !part.done; part = await reader.read()) {
		const events = (rest + decoder.decode(part.value, { stream: true })).split("\n\n")
		rest = events.pop() ?? ""
		for (const event of events) {
			const data = event
				.split("\n")
				.filter((line) => line.startsWith("data:"))
				.map((line) => line.slice(5))
				.join("\n")
			if (data) onEvent(JSON.parse(data))
		}
	}
}

// Serves survey pages without the network after the first visit. The network comes first; the stored copy is used only
// if it fails, so a change of
// the collector is seen as soon as it can be reached. Requests with a token or a body are never stored.

/** Name of the store, which the survey page fills, too. */
const CACHE = "sfumato-survey"
const FILES = [
	"plain.css",
	"icon.svg",
	"survey.js",
	"districts.js",
	"dom.js",
	"domains.js",
	"messages.js",
	"messages-de.js",
	"messages-ar.js",
	"number-choice.js",
	"promise.js",
	"replies.js",
	"structure.js",
	"words.js",
	"sfumato.js",
]
/** Paths of the survey page, of its files and of the collections that it reads. */
const STORED = /^\/(static\/[\w.-]+|c\/[a-z2-7]+|v1\/collections\/[a-z2-7]+)$/

const scope = /** @type {any} */ (self)

scope.addEventListener("install", (/** @type {any} */ event) =>
	event.waitUntil(
		caches
			.open(CACHE)
			.then((cache) => cache.addAll(FILES.map((name) => `/static/${name}`)))
			.then(() => scope.skipWaiting()),
	),
)

scope.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(scope.clients.claim()))

scope.addEventListener("fetch", (/** @type {any} */ event) => {
	const { request } = event,
		{ origin, pathname } = new URL(request.url)
	if (
		request.method !== "GET" ||
		origin !== location.origin ||
		!STORED.test(pathname) ||
		request.headers.has("authorization")
	)
		return
	event.respondWith(
		(async () => {
			const cache = await caches.open(CACHE)
			try {
				const response = await fetch(request)
				if (response.ok) await cache.put(pathname, response.clone())
				// A survey that was deleted is not shown from the store.
				else if (response.status === 404) await cache.delete(pathname)
				return response
			} catch (error) {
				const copy = await cache.match(pathname)
				if (copy) return copy
				throw error
			}
		})(),
	)
})

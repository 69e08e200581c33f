/** The types of `sfumato.js`: first its exports, then documents and results, last internal types. */

/**
 * Open the collection at an address: fetch it, check it, and compute what a reply reveals. With `start`, the hash of
 * the mechanism must begin with it.
 * Rejects with an error whose `name` states the reason; docs/browser-client.md lists the names.
 */
export declare function openCollection(address: string, start?: string): Promise<Collection>

/** Return all answers that this browser profile stores for pages of this origin. */
export declare function answers(): Promise<Answer[]>

/** Send the waiting answers. Resolves to the number of answers that are still waiting. */
export declare function flush(): Promise<number>

/** Read a mechanism from its spec. Throws if the spec is unknown or malformed. */
export declare function readMechanism(spec: any): Mechanism

/** Compute what a report of a mechanism reveals. Throws if the mechanism violates the policy of this document. */
export declare function disclose(mechanism: Mechanism, document: any): Disclosure

/** Draw a report of the value with index x, with random bytes from `crypto.getRandomValues`. */
export declare function privatize(mechanism: Mechanism, x: number): bigint

/** Return the bytes of a report, little-endian. All reports of a mechanism have the same length. */
export declare function serialise(mechanism: Mechanism, report: bigint): Uint8Array

/** Read an epsilon or a number of a document as a double: "1", "-1/2", "0.25", "ln 3", "3/2*ln 5/2", "1+ln 2", "inf". */
export declare function readLevel(value: any): number

/**
 * Make decisions from known bits instead of random ones, to replay vectors. The bits of the frame come first, then those of
 * the auxiliary stream: `auxiliary(width)` returns that many bits as an integer.
 */
export declare function bitDraws(auxiliary: (width: number) => bigint, layout: Layout, frame: Uint8Array): Decisions

/** Read a cyclic design from its document. */
export declare function readDesign(document: any): Design

/** Return the positions of the least of `among` keys of SplitMix64, ascending, which are the sets of nested cyclic designs. */
export declare function leastKeys(seed: bigint, first: number, among: number, size: number): number[]

/** Return the weights over 2^62 of geometric noise, by its distance from 0; the last one is that of a whole tail. */
export declare function noiseOf(ratio: bigint, last: number): bigint[]

// -- documents and results ---------------------------------------------------------------------------------

/** A collection as the collector describes it, with methods to answer it. */
export interface Collection {
  id: string
  title: string
  description: string
  state: "scheduled" | "open" | "closed" | "archived"
  /** Time from which replies are accepted, in seconds since 1970; null for no limit. */
  opens?: number | null
  submission: "open" | "key" | "token"
  /** Id of the previous version. */
  previous?: string | null
  /** The requirements of the policy, in words. */
  asks: string
  /** Spec of the mechanism. */
  mechanism: any
  mechanism_hash: string
  /** Document of the policy. */
  policy: any
  /** The schedule of a collection that asks again; null if it asks once. */
  waves?: Waves | null
  /** Greatest number of permanent answers that this browser draws, if the collection has waves. */
  most?: number
  /** How the survey page presents the collection; null for a plain question. */
  presentation?: any
  /** Absolute URL of the collection. */
  url: string
  domain: Domain
  /** What a reply reveals. `openCollection` rejects a mechanism that violates the policy. */
  disclosure: Disclosure
  /** Return the answer that this browser profile gave to this collection, if any; with waves, that of the current wave. */
  answered(): Promise<Answer | undefined>
  /** Return whether another collection asks the same question with the same mechanism. */
  asksAs(other: Collection): boolean
  /** Return the answer to the same question in another collection; `answer` would send its reply again. */
  remembered(): Promise<Answer | undefined>
  /**
   * Return whether this browser profile answered the same question with another mechanism. That reply cannot be sent again,
   * and what both replies reveal adds up.
   */
  drawnAgain(): Promise<boolean>
  /**
   * Ask the collector, without a report, whether it would count a reply with this key or token now. Return its rejection, or
   * undefined if it would, or if it cannot be reached. `answer` asks before it draws, and `flush` before it sends.
   */
  refusal(token?: string): Promise<Problem | undefined>
  /**
   * Draw a report once, store it, and send it now or later, with the key or token that the collection requires.
   * If a report is already stored, send that one instead, whatever the value is; the value may then be left out. `repeated`
   * states whether that happened.
   *
   * With waves, it answers the current wave. A value draws a permanent answer once, which is stored before a report about it is
   * drawn. Every wave draws a new report, which is stored before it is sent. When `most` permanent answers are stored, the
   * browser keeps answering from memory, whatever the value is.
   */
  answer(value?: any, token?: string): Promise<Answer & { repeated: boolean }>
}

/** The schedule of a collection that asks again. Times are seconds since 1970. */
export interface Waves {
  /** Number of waves. */
  count: number
  /** Length of a wave in days; null if an administrator opens each wave. */
  days: number | null
  /** Time at which the first wave starts. */
  start: number
  /** Number of the current wave, from 0; null before the first and after the last one. */
  current: number | null
  /** Time at which the next wave starts, or the last one ends; null if an administrator decides. */
  next: number | null
}

/** What a reply reveals, computed from the law of the mechanism that draws it. */
export interface Disclosure {
  /** What all replies about one unchanged value reveal together, if the mechanism keeps permanent answers. */
  lifetime?: Disclosure
  /** Probability that the best guess of the answer from the reply is correct, if all answers are equally likely. */
  guess: number
  /** Probability that a guess without the reply is correct. */
  chance: number
  /** The same for the attribute that a reply reveals most about, such as an option of a multiple choice, if it is known. */
  part?: { guess: number; chance: number }
  /** Whether the mechanism is shown to obey the policy; false if the module cannot decide it. */
  proved: boolean
  /**
   * Return, for each value, the logarithm of the largest likelihood ratio against other values: those of the same group, or,
   * if `same` is false, those of other groups.
   */
  levels(groupOf?: (x: number) => any, same?: boolean): number[]
  /** Return the largest probability of a value after a reply of this epsilon, if its probability was `before`. */
  after(before: number, level: number): number
  /** Return, for each value, its probability before the reply (`before`, or the policy's prior) and the largest one after it. */
  beliefs(before: number): number[][]
}

/** The stored record of an answer. It never contains the value. */
export interface Answer {
  /** Address of the collection; that of a wave ends in # and its number. */
  collection: string
  /** Number of the wave. */
  wave?: number
  /** Hash of the mechanism. */
  mechanism: string
  /** The policy, as JSON; that of permanent answers is the lifetime policy. */
  policy: string
  /** The report as it is sent, as JSON. */
  report: string
  batch: string
  /** `kept` for the record of permanent answers, which are not sent; it has no report. */
  state: "waiting" | "sent" | "refused" | "kept"
  kept?: Kept[]
  /** Greatest number of permanent answers. */
  most?: number
  /** The collector's reason, if it rejected the report. */
  problem?: Problem
  /** Key or one-time token, deleted when the report is sent. */
  token?: string
  /** Normalized title of the collection; collections with the same one get the same reply. */
  question?: string
  /** Address of the previous version of the collection. */
  previous?: string
  /** Address of the collection that the reply was drawn for, if it was another one. */
  drawn?: string
}

/** Why the collector does not accept a report. */
export interface Problem {
  reason: string
  message: string
}

/** Values in a fixed order. */
export interface Domain {
  size: number
  /** Names and sizes of the factors of a product. */
  names?: string[]
  sizes?: number[]
  /** Return the index of a value, or -1. Numbers are put into bins; null and NaN are missing values. */
  place(value: any): number
}

/** A mechanism that was read from a valid spec. */
export interface Mechanism {
  encoding: "index" | "bitmap" | "parted"
  bits: number
  domain: Domain
  layoutOf(x: number): Layout
  sample: Sample
  law: Law
  /** The permanent answers of a memoized mechanism, and reports about them. */
  memory?: Memory
}

/** Permanent answers, and reports about them. */
export interface Memory {
  /** Law of a permanent answer. */
  law: Law
  /** Policy of all reports about one permanent answer, without the domain. */
  lifetime: any
  /** Greatest number of permanent answers. */
  most: number
  /** Number of waves after which every device draws a new permanent answer; null without a schedule. */
  every: number | null
  /** Draw a permanent answer; `earlier` is the first one of the same person. */
  draw(x: number, draws: Decisions, earlier?: bigint): bigint
  /** Return the number under which the permanent answer of a value is stored. */
  keyOf(x: number, earlier: bigint): number
  /** Draw a report about a permanent answer. */
  report(answer: bigint, draws: Decisions): bigint
}

/** The bits of a frame that the decisions of a mechanism read (docs/words-to-decisions.md). */
export interface Layout {
  frame_bits: number
  numbers: number[][]
  lanes: number
  planes: number
  planes_start: number
}

/** The random decisions of a sampler. */
export interface Decisions {
  bernoulli(numerator: bigint, denominator: bigint): boolean
  below(m: number | bigint): number
}

// -- internal types, which may change -------------------------------------------------------------------------

/**
 * Draws a report of the value with index x: the index of an output, or a number whose binary digits are a bitmap.
 * In a part, x is -1 for a value that may be revealed, and the report is -1 if it is revealed.
 */
export type Sample = (x: number, draws: Decisions) => bigint

/** Numerator and denominator. */
export type Fraction = [bigint, bigint]

/** A law with two likelihoods per report: a high one for the values in the set of the report, a low one for all others. */
export interface TwoLevels {
  /** Probability, over 2^64, that a report depends on the value. */
  keep: bigint
  high: bigint
  low: bigint
  /** Sum over all reports of the largest likelihood. */
  greatest: Fraction
  /**
   * Return the weights of the lightest set that is not empty, and of the heaviest set that does not contain all values. With
   * `more`, other values exist, and the heaviest set may contain all of these.
   */
  extremes(weights: number[], more?: boolean): [number, number]
}

/**
 * A cyclic design. The outputs whose set contains value x are j·modulus + (x + e) mod modulus, for every residue e of every
 * base block j.
 */
export interface Design {
  modulus: number
  /** Number of residues of a base block. */
  size: number
  /** The base blocks, each in ascending order. */
  base: Uint32Array[]
}

/** The law of a mechanism, as far as the module needs it. Fractions are exact; other numbers are accurate to 1e-12. */
export interface Law {
  /** Sum over all reports of the largest likelihood of a value. */
  greatest: Fraction
  /** Return the class of a value; values of one class have the same ratios. */
  classOf(x: number): number
  /** Return the logarithm of the largest ratio of the likelihoods of x and of another value. */
  ratio(x: number, other: number): number
  /** Return the logarithms of the largest ratios of a likelihood to its average over a prior, and of the average to a likelihood. */
  against?(prior: number[]): number[]
  /** Return the likelihoods of all values, one list per report. */
  columns?(): number[][]
  /** Return the sums of the largest likelihoods of the values of each attribute, if the values of the others are equally likely. */
  attributes?(sizes: number[]): Fraction[]
  /** Independent reports about some attributes each, of which all are sent, or one. */
  components?: Component[]
  /** Return the level of all components from their levels: the sum if all are sent, the greatest if one is. */
  combined?(levels: number[]): number
}

/** The law of reports about some attributes of a value. */
export interface Component {
  /** Positions of the attributes, ascending. */
  axes: number[]
  /** Number of combinations of the attributes. */
  size: number
  law: Law
}

/** The limits of a policy on pairs: the logarithm of a likelihood ratio must be at most the limit. */
export interface Limits {
  /** Return the class of a value; values of one class have the same limits. */
  classOf(x: number): any
  limit(x: number, other: number): number
  /** Return the limit of two combinations of some attributes, if limits add up over attributes. */
  of?(axes: number[], pair: [number[], number[]]): number
}

/** A stored permanent answer, under a salted hash of the value or of the time. */
export interface Kept {
  salt: string
  key: string
  answer: string
}

/** A mechanism that hides values within parts. */
export interface Parted extends Sample {
  law: Law
  parts: Part[]
  partOf(x: number): number
  layoutOf?(x: number): number
  /** Return the report within its part, or -1 if it reveals the value, and a value of the part. */
  split(report: bigint): [bigint, number]
  /** Return the report of a mechanism from that of a part, to which the value belongs. */
  join(report: bigint, x: number): bigint
}

/** A mechanism for the values of one part. */
export interface Part extends Sample {
  levels: TwoLevels
  law: Law
  /** Number of reports if they are indices, else 0. */
  outputs: bigint
  bits: number
  /** Parts of different shapes have different layouts. */
  shape: string
  /** Number of values of every set, if the sets are all subsets of this size, else 0. */
  size: number
  /** Number of permanent answers, key and further draws of a mechanism whose values share answers. */
  answers?: number
  keyOf?(x: number, earlier: bigint): number
  again?(x: number, draws: Decisions, earlier?: bigint): bigint
}

/** A mechanism for one coordinate of a product; its reports are indices. */
export interface Factor extends Sample {
  law: Law
  /** Number of reports. */
  outputs: bigint
}

/** Creates a mechanism over k values from its parameters. With several layouts, `layoutOf` returns the index of a value's layout. */
export type Maker<T = Sample & { law: Law; layoutOf?(x: number): number; memory?: Memory }> = (parameters: any, k: number, sizes?: number[]) => T

/** A set with one bit per element: its coin and its size (evaluated when needed), and an element whose bit is forced. */
export type Group = [set: Uint8Array, coin: () => bigint, size: () => number, at: number, bit?: number]

/** The types of `sfumato.js`: first what it exports, then the documents it works with, last what it is made of. */

/**
 * Open the collection at an address: fetch it, check it, and compute what a reply reveals.
 * Rejects with an error whose `name` says why: README.md lists the names.
 */
export declare function openCollection(address: string): Promise<Collection>

/** Every answer given in this browser profile to collections that were opened from this origin. */
export declare function answers(): Promise<Answer[]>

/** Send the answers that wait. Resolves to the number of answers that still do. */
export declare function flush(): Promise<number>

/** Read a mechanism from its spec. Throws on anything that is not exactly a known spec. */
export declare function readMechanism(spec: any): Mechanism

/** Compute what a report of a mechanism reveals. Throws if the mechanism breaks the policy of this document. */
export declare function disclose(mechanism: Mechanism, document: any): Disclosure

/** Draw a report of the value with index x, with random bytes of `crypto.getRandomValues`. */
export declare function privatize(mechanism: Mechanism, x: number): bigint

/** The bytes of a report, little-endian, of the same length for every report of a mechanism. */
export declare function serialise(mechanism: Mechanism, report: bigint): Uint8Array

/** Read a level or a number of a document as a double: "1", "-1/2", "0.25", "ln 3", "3/2*ln 5/2", "1+ln 2", "inf". */
export declare function readLevel(text: any): number

/**
 * Make decisions from given bits instead of random ones, to replay vectors: those of a frame, then those of the
 * auxiliary stream, which is asked for a number of bits and returns them as an integer.
 */
export declare function bitDraws(auxiliary: (width: number) => bigint, layout: Layout, frame: Uint8Array): Decisions

// -- documents and results ---------------------------------------------------------------------------------

/** A collection as the collector describes it, and what can be done with it. */
export interface Collection {
  id: string
  title: string
  description: string
  state: "open" | "closed" | "archived"
  submission: "open" | "key" | "token"
  /** The id of the version before. */
  previous?: string | null
  /** What the policy asks, in words. */
  asks: string
  /** The mechanism's spec. */
  mechanism: any
  mechanism_hash: string
  /** The policy's document. */
  policy: any
  /** Its address, in full. */
  url: string
  domain: Domain
  /** What a reply reveals. A mechanism that breaks the policy is refused before. */
  disclosure: Disclosure
  /** The answer that was given here, if one was. */
  answered(): Promise<Answer | undefined>
  /** Whether another collection asks the same question, by the same mechanism. */
  asksAs(other: Collection): boolean
  /** The answer to the same question in another collection, whose reply would be sent again. */
  remembered(): Promise<Answer | undefined>
  /** Whether the same question was answered by another mechanism: its reply cannot be sent again, and what both reveal adds up. */
  drawnAgain(): Promise<boolean>
  /**
   * Draws once, keeps what was drawn, and sends it now or later, with the key or token that the collection asks for.
   * What was drawn before is sent instead, whatever the value is now, which may then be left out: `repeated` says so.
   */
  answer(value?: any, token?: string): Promise<Answer & { repeated: boolean }>
}

/** What a reply reveals, computed from the law of the mechanism that draws it. */
export interface Disclosure {
  /** The probability that the best guess of the answer from the reply is right, all answers being equally likely. */
  guess: number
  /** The same without the reply. */
  chance: number
  /** Whether the mechanism was shown to obey the policy; if not, that could not be decided here. */
  proved: boolean
  /** For each value, the logarithm of the greatest likelihood ratio against other values: of the same group, or of others. */
  levels(groupOf?: (x: number) => any, same?: boolean): number[]
  /** The greatest probability that a value can have after a reply of this level, if it had `before`. */
  after(before: number, level: number): number
  /** For each value its probability before (`before`, or what the policy's prior says) and the greatest one after a reply. */
  beliefs(before: number): number[][]
}

/** What is kept of an answer: never the value. */
export interface Answer {
  /** The address of the collection. */
  collection: string
  /** The mechanism's hash. */
  mechanism: string
  /** The policy, as JSON. */
  policy: string
  /** The report as it is sent, as JSON. */
  report: string
  batch: string
  state: "waiting" | "sent" | "refused"
  /** Why it was refused, in the collector's words. */
  problem?: { reason: string; message: string }
  /** What allows to send it, until it is sent. */
  token?: string
  /** The collection's title, without what is not read of it: the same question is answered by the same reply. */
  question?: string
  /** The address of the version before. */
  previous?: string
  /** The collection that the reply was drawn for, where it was another. */
  drawn?: string
}

/** Values in a fixed order. */
export interface Domain {
  size: number
  /** Of a product. */
  names?: string[]
  sizes?: number[]
  /** The index of a value, or -1. */
  place(value: any): number
}

/** A mechanism, ready to draw: its spec was read and checked. */
export interface Mechanism {
  encoding: "index" | "bitmap" | "parted"
  bits: number
  domain: Domain
  layoutOf(x: number): Layout
  sample: Sample
  law: Law
}

/** Which bits of a frame a mechanism's decisions read (docs/words-to-decisions.md). */
export interface Layout {
  frame_bits: number
  numbers: number[][]
  lanes: number
  planes: number
  planes_start: number
}

/** What a sampler may ask of randomness. */
export interface Decisions {
  bernoulli(numerator: bigint, denominator: bigint): boolean
  below(m: number | bigint): number
}

// -- what the module is made of: not for callers, and free to change ------------------------------------------

/**
 * Draws a report of the value with index x: the number of an output, or one whose digits are the bits of a bitmap.
 * In a part x is -1 for a value that may be revealed, and the report -1 where it is.
 */
export type Sample = (x: number, draws: Decisions) => bigint

/** Numerator and denominator. */
export type Fraction = [bigint, bigint]

/** Likelihoods of a report that are high for the values in its set and low for all others. */
export interface TwoLevels {
  /** Over 2^64: the probability that a report depends on the value. */
  keep: bigint
  high: bigint
  low: bigint
  /** The sum over the reports of the greatest likelihood. */
  greatest: Fraction
  /** The weights of the lightest set that is not empty and of the heaviest that does not hold all values, or `more` than these. */
  extremes(weights: number[], more?: boolean): [number, number]
}

/** What is needed of a mechanism's law: exact where it is a fraction, else good to 1e-12. */
export interface Law {
  /** The sum over the reports of the greatest likelihood of a value. */
  greatest: Fraction
  /** Values of one class have the same ratios. */
  classOf(x: number): number
  /** The logarithm of the greatest ratio of the likelihoods of x and of another value for a report. */
  ratio(x: number, other: number): number
  /** The logarithms of the greatest ratios of a likelihood to the average over a prior, and of the average to a likelihood. */
  against?(prior: number[]): number[]
  /** Likelihoods of all values, a list for each report. */
  columns?(): number[][]
}

/** What a policy asks of pairs: the logarithm of a likelihood ratio is at most the limit. */
export interface Limits {
  /** Values of one class have the same limits. */
  classOf(x: number): any
  limit(x: number, other: number): number
}

/** A mechanism that a part may have. */
export interface Part extends Sample {
  levels: TwoLevels
  law: Law
  /** How many reports there are, if they are numbered; else 0. */
  outputs: bigint
  bits: number
  /** Parts of different shapes have different layouts. */
  shape: string
}

/** What a mechanism's parameters say about k values. Where there are several layouts, `layoutOf` tells which. */
export type Maker<T = Sample & { law: Law; layoutOf?(x: number): number }> = (parameters: any, k: number) => T

/** A set, a bit an element: its coin and its size (asked when they are needed), and the bit it is forced to have. */
export type Group = [set: Uint8Array, coin: () => bigint, size: () => number, at: number, bit?: number]

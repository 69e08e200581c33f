/** The types of `sfumato.js`. */

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

/**
 * Draws a report of the value with index x: the number of an output, or one whose digits are the bits of a bitmap.
 * In a part x is -1 for a value that may be told in clear, and the report -1 where it is.
 */
export type Sample = (x: number, draws: Decisions) => bigint

/** A mechanism that a part may have. */
export interface Part extends Sample {
  /** How many reports there are, if they are numbered; else 0. */
  outputs: bigint
  bits: number
  /** Parts of different shapes have different layouts. */
  shape: string
}

/** What a mechanism's parameters say about k values. Where there are several layouts, `layoutOf` tells which. */
export type Maker<T = Sample & { layoutOf?(x: number): number }> = (parameters: any, k: number) => T

/** A set, a bit an element: its coin and its size (asked when they are needed), and the bit it is forced to have. */
export type Group = [set: Uint8Array, coin: () => bigint, size: () => number, at: number, bit?: number]

/** Values in a fixed order. */
export interface Domain {
  size: number
  /** The index of a value, or -1. */
  place(value: any): number
}

export interface Mechanism {
  encoding: "index" | "bitmap" | "parted"
  bits: number
  domain: Domain
  layoutOf(x: number): Layout
  sample: Sample
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
}

/** A collection as the collector describes it, and what can be done with it. */
export interface Collection {
  id: string
  title: string
  description: string
  state: "open" | "closed" | "archived"
  submission: "open" | "key" | "token"
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
  /** The answer that was given here, if one was. */
  answered(): Promise<Answer | undefined>
  /** Draws once, keeps what was drawn, and sends it now or later, with the key or token that the collection asks for. */
  answer(value: any, token?: string): Promise<Answer>
}

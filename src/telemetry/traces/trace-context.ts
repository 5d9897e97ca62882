import { randomFillSync } from "node:crypto";

/** The identity of a span that is sent along with requests (W3C Trace Context, Level 2). */
export interface SpanContext {
  /** 32 hex digits in lower case. */
  readonly traceId: string;
  /** 16 hex digits in lower case. */
  readonly spanId: string;
  /** Bit 0: whether the span is recorded. */
  readonly traceFlags: number;
  /** The `tracestate` of the caller, passed on as it came; "" without one. */
  readonly traceState: string;
}

/** The bit of {@link SpanContext.traceFlags} that is set when a span is recorded. */
export const sampledFlag = 1;

/** Returns whether a span is recorded. */
export function isSampled({ traceFlags }: SpanContext): boolean {
  return (traceFlags & sampledFlag) !== 0;
}

// §3.2.2: version, trace-id, parent-id, trace-flags. A version above 00 may be longer, after another hyphen.
const traceparentForm = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;

// §3.2.2.1: the length of version 00, and a bound for later versions, so that no client makes us search a long text.
const traceparentLength = 55;
const traceparentLengthMax = 256;

/** The longest `tracestate` that is passed on, in characters (§3.3.1.5 asks for 512 at least). */
const traceStateLengthMax = 512;

/** Reads the caller's trace; `undefined` if its `traceparent` is missing, repeated or malformed (§3.2.2.3). */
export function readTraceContext(traceparent: string | null, tracestate: string | null): SpanContext | undefined {
  if (traceparent === null || traceparent.length > traceparentLengthMax) return undefined;
  const [, version, traceId, spanId, flags = ""] = traceparentForm.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  if (version === "00" && traceparent.length !== traceparentLength) return undefined;
  const isKept = tracestate !== null && tracestate.length <= traceStateLengthMax && /^[\x20-\x7e]*$/.test(tracestate);
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), traceState: isKept ? tracestate : "" };
}

/** Returns the `traceparent` of a request that we send within a span. */
export function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, "0")}`;
}

// Random bytes are fetched for hundreds of ids at once: one at a time they would cost ten times as much.
const pool = Buffer.alloc(8_192);
let used = pool.length;

/**
 * Returns 52 random bits as a number, which holds them exactly: the part of a trace id that samplers look at. They cost
 * a tenth of a whole id, which requests that are not sampled rarely need.
 */
export function newRandomness(): number {
  const at = take(8);
  return pool.readUInt32LE(at) * 2 ** 20 + (pool.readUInt32LE(at + 4) >>> 12);
}

/** Returns the bits of a trace id that samplers look at: the upper 52 of the last 56, which Level 2 wants to be random. */
export function randomnessOf(traceId: string): number {
  return Number.parseInt(traceId.slice(18, 31), 16);
}

/** Returns a random trace id with this {@link randomnessOf}. It is all zeros, which is invalid, once in 2^128 times. */
export function newTraceId(randomness: number): string {
  return takeHex(9) + randomness.toString(16).padStart(13, "0") + takeHex(1).slice(1);
}

/** Returns a random span id. */
export function newSpanId(): string {
  return takeHex(8);
}

function takeHex(bytes: number): string {
  const at = take(bytes);
  return pool.toString("hex", at, at + bytes);
}

/** Returns the offset in the pool of so many bytes that have not been used yet. */
function take(bytes: number): number {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return used - bytes;
}

import { isSampled, type SpanContext } from "./trace-context.ts";

/**
 * Decides whether the span of a request is recorded.
 *
 * @param randomness - the upper 52 of the last 56 bits of the trace id, which are the same for all spans of a trace
 * @param parent - the caller's span, if it sent one
 */
export type Sampler = (randomness: number, parent: SpanContext | undefined) => boolean;

/** The values of `OTEL_TRACES_SAMPLER`. */
export const samplerNames = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/** One of {@link samplerNames}. */
export type SamplerName = (typeof samplerNames)[number];

/** Creates a sampler. @param ratio - the share of traces to record, from 0 to 1, for the samplers that take one */
export function createSampler(name: SamplerName, ratio: number): Sampler {
  const root = rootSampler(name, ratio);
  if (!name.startsWith("parentbased_")) return root;
  return (randomness, parent) => (parent === undefined ? root(randomness, parent) : isSampled(parent));
}

function rootSampler(name: SamplerName, ratio: number): Sampler {
  if (name.endsWith("always_on")) return () => true;
  if (name.endsWith("always_off")) return () => false;
  const threshold = (1 - ratio) * 2 ** 52;
  return (randomness) => randomness >= threshold;
}

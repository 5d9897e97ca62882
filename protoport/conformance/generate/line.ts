import type { CaseRequest, Expectation, Json, Need } from "../runner/index.ts";

/** A line in a case file. */
export interface Line {
  readonly id: string;
  readonly title: string;
  readonly level: "must" | "should";
  readonly sentence: string;
  readonly needs?: readonly Need[];
  readonly request: CaseRequest;
  readonly expect: Expectation;
  readonly or?: readonly Expectation[];
}

/** Expects that the backend is not called for an invalid request, and that the status is 4xx (RFC 9110 §15.5). */
export const refused: Expectation = { refused: ["4xx"] };

/**
 * Expects that the backend is called with a message that has only this field. A field with its default value is not
 * set.
 */
export function asked(rpc: string, field: string, json: Json | undefined): Expectation {
  return { rpc, message: json === undefined ? {} : { [field]: json } };
}

/** Escapes all except unreserved characters, for a path or a query value (RFC 3986 §2.3). */
export function escaped(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);
}

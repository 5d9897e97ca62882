import type { CaseRequest, Expectation, Json, Need } from "../runner/index.ts";

/** A case as its line has it. */
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

/** The mistake of a client: the backend is not asked, and the status says whose mistake it is (RFC 9110 §15.5). */
export const refused: Expectation = { refused: ["4xx"] };

/** The backend was asked an RPC with a message of this field alone; of none, if it has its default. */
export function asked(rpc: string, field: string, json: Json | undefined): Expectation {
  return { rpc, message: json === undefined ? {} : { [field]: json } };
}

/** A text as a path or the value of a query has it: all but unreserved characters escaped (RFC 3986 §2.3). */
export function escaped(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);
}

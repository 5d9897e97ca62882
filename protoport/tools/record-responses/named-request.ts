import type { HttpRequest } from "../../testing/src/http/exchange.ts";

/** A request with the name under which its response is recorded. */
export interface NamedRequest extends HttpRequest {
  readonly name: string;
}

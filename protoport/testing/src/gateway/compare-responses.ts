import type { GatewayOptions } from "../../../gateway/src/index.ts";
import { createGateway } from "../../../gateway/src/index.ts";
import type { HttpRequest } from "../http/exchange.ts";
import { exchangeFetch } from "../http/fetch.ts";
import { compareValues, type Differs } from "../comparison.ts";
import { kitchenSinkOptions } from "./kitchen-sink.ts";

/** Gateway options with an option's value. The options may record the arguments of their callbacks. */
export type OptionValue = Partial<GatewayOptions> | ((record: (what: unknown) => void) => Partial<GatewayOptions>);

/** A request's method and target, body and header fields. */
export interface ShortRequest {
  /** The method and the target, such as `GET /v1/query`. */
  readonly line: string;
  readonly body?: string | Uint8Array;
  readonly header?: Readonly<Record<string, string>>;
}

/** Converts the request, with JSON as the default content type. */
function toHttpRequest({ line, body, header = {} }: ShortRequest): HttpRequest {
  const [httpMethod = "", path = ""] = line.split(" ");
  const fields = { ...(body !== undefined && { "content-type": "application/json" }), ...header };
  return { httpMethod, path, header: Object.entries(fields), ...(body !== undefined && { body: Buffer.from(body) }) };
}

/** Compares a kitchen sink's responses, or the errors, with two option values, and the records of their callbacks. */
export async function compareResponses(request: ShortRequest, off: OptionValue, on: OptionValue): Promise<Differs> {
  return await compareValues(off, on, async (value) => {
    const recorded: unknown[] = [];
    const options = typeof value === "function" ? value((what) => void recorded.push(what)) : value;
    try {
      const gateway = createGateway({ ...kitchenSinkOptions, ...options });
      const { httpStatus, header, body } = await exchangeFetch(gateway.fetch, toHttpRequest(request));
      return [httpStatus, header, String(body), recorded];
    } catch (error) {
      return error;
    }
  });
}

import { createGateway, type RestOptions } from "../../../src/gateway/index.ts";
import type { Field } from "../carriers/exchange.ts";
import { exchangeFetch } from "../carriers/fetch.ts";
import { kitchenSinkOptions } from "./kitchen-sink.ts";

/** What a kitchen sink says to a request: the message that its handler got, or the error. */
export type SinkAnswer = { readonly sink: unknown } | { readonly httpStatus: number; readonly message: unknown };

/** Creates the function that sends requests, such as `GET /v1/query?a=b`, to a kitchen sink with options of REST. */
export function createSink(
  rest: RestOptions,
): (request: string, body?: string | Uint8Array, type?: string) => Promise<SinkAnswer> {
  const gateway = createGateway({ ...kitchenSinkOptions, rest });
  return async (request, body, type) => {
    const [httpMethod = "", path = ""] = request.split(" ");
    const header: readonly Field[] = type === undefined ? [] : [["content-type", type]];
    const sent = { httpMethod, path, header, ...(body !== undefined && { body: Buffer.from(body) }) };
    const answer = await exchangeFetch(gateway.fetch, sent);
    const json: { sink?: unknown; message?: unknown } = JSON.parse(String(answer.body));
    return answer.httpStatus === 200 ? { sink: json.sink } : { httpStatus: answer.httpStatus, message: json.message };
  };
}

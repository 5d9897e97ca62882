import { bodyOf, type Exchange, headerOf } from "../../../../../conformance/runner/response.ts";
import type { FetchHandler } from "../../../../src/index.ts";
import { exchangeFetch } from "../../../../../testing/src/http/fetch.ts";

/** Sends the cases' requests through a Fetch handler. */
export function overFetch(fetch: FetchHandler): Exchange {
  return async (request) => {
    const body = bodyOf(request);
    const { httpStatus, header, ...answer } = await exchangeFetch(fetch, {
      httpMethod: request.method,
      path: request.target,
      header: headerOf(request),
      ...(body === undefined ? {} : { body }),
    });
    return { status: httpStatus, header, body: answer.body, isComplete: true };
  };
}

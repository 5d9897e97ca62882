import { type Case, type CaseRequest, type Exchange } from "../../../conformance/runner/index.ts";
import { bodyOf, headerOf } from "../../../conformance/runner/response.ts";
import type { FetchHandler } from "../../../gateway/src/index.ts";
import type { HttpRequest } from "../http/exchange.ts";
import { canFetchSend, exchangeFetch } from "../http/fetch.ts";
import { allCases } from "./all-cases.ts";

function toHttpRequest(request: CaseRequest): HttpRequest {
  const body = bodyOf(request);
  const head = { httpMethod: request.method, path: request.target, header: headerOf(request) };
  return { ...head, ...(body !== undefined && { body }) };
}

/** The cases whose requests Fetch can express. */
export const fetchCases: readonly Case[] = allCases.filter(({ request }) => canFetchSend(toHttpRequest(request)));

export function overFetch(fetch: FetchHandler): Exchange {
  return async (request) => {
    const { httpStatus, header, body } = await exchangeFetch(fetch, toHttpRequest(request));
    return { status: httpStatus, header, body, isComplete: true };
  };
}

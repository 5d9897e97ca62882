import { type Exchange, readHeaderField } from "../http/index.ts";

/** Returns the request id in the response, or otherwise the request id that the client has sent. */
export function requestIdOf({ addedFields, common }: Exchange): string | undefined {
  const requestId = readHeaderField(addedFields, "x-request-id") ?? common.xRequestId;
  return requestId !== null && printableId.test(requestId) ? requestId : undefined;
}

// Matches short ids without line breaks, so that a client cannot inject line breaks or long strings into logs.
const printableId = /^[!-~]{1,128}$/;

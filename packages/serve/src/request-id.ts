import { type Exchange, readHeaderField } from "@plantstore/http";

/** Returns a request id that the client knows: the response's, or the one that the client has sent. */
export function requestIdOf({ addedFields, common }: Exchange): string | undefined {
  const requestId = readHeaderField(addedFields, "x-request-id") ?? common.xRequestId;
  return requestId !== null && printableId.test(requestId) ? requestId : undefined;
}

// Prevents a client from injecting line breaks or long strings into logs.
const printableId = /^[!-~]{1,128}$/;

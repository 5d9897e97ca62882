import type { ConnectError } from "@connectrpc/connect";
import { type ErrorRecordPolicy, errorToRest, type RestFailure } from "../rest/index.ts";

/** An error as an HTTP answer. */
export interface WrittenError {
  readonly httpStatus: number;
  readonly contentType: string;
  readonly body: Uint8Array;
}

/** Makes the HTTP answer of an error, from whatever layer it comes. */
export type ErrorWriter = (error: ConnectError, failure: RestFailure) => WrittenError;

/** Makes the one {@link ErrorWriter} of a gateway from its policy. */
export function createErrorWriter(policy: ErrorRecordPolicy): ErrorWriter {
  return (error, failure) => {
    const { httpStatus, contentType = "application/json", body = empty } = errorToRest(error, failure, policy);
    return { httpStatus, contentType, body };
  };
}

const empty = new Uint8Array(0);

import type { Registry } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { createStatusRecord, type ErrorRecordPolicy, errorToRest, type RestFailure } from "../rest/index.ts";

/** An error as an HTTP answer. */
export interface WrittenError {
  readonly httpStatus: number;
  readonly contentType: string;
  readonly body: Uint8Array;
}

/** Makes the HTTP answer of an error, from whatever layer it comes. */
export interface ErrorWriter {
  (error: ConnectError, failure: RestFailure): WrittenError;
  /** Whether errors look as the library has them, and not as a policy does. */
  readonly isDefault: boolean;
}

/** Makes the one {@link ErrorWriter} of a gateway: by its policy, or with google.rpc.Status as JSON. */
export function createErrorWriter(policy: ErrorRecordPolicy | undefined, registry: Registry | undefined): ErrorWriter {
  const errorRecord = policy ?? createStatusRecord(registry);
  const write = (error: ConnectError, failure: RestFailure): WrittenError => {
    const { httpStatus, contentType = "application/json", body = empty } = errorToRest(error, failure, errorRecord);
    return { httpStatus, contentType, body };
  };
  return Object.assign(write, { isDefault: policy === undefined });
}

const empty = new Uint8Array(0);

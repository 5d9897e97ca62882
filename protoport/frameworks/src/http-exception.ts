import { Code, ConnectError } from "@connectrpc/connect";

/** The codes for Nest's exceptions, by their HTTP status. */
const codes: Readonly<Record<number, Code>> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  409: Code.AlreadyExists,
  412: Code.FailedPrecondition,
  422: Code.InvalidArgument,
  429: Code.ResourceExhausted,
  501: Code.Unimplemented,
  503: Code.Unavailable,
};

/** Returns the error for a Nest `HttpException` with a status in `codes`, and `undefined` for any other error. */
export function fromHttpException(error: unknown): ConnectError | undefined {
  if (!(error instanceof Error) || !("getStatus" in error) || typeof error.getStatus !== "function") return undefined;
  const code = codes[Number(error.getStatus())];
  return code === undefined ? undefined : new ConnectError(error.message, code, undefined, undefined, error);
}

import { Code, ConnectError } from "@connectrpc/connect";
import { goneAway } from "../index.ts";
import { ErrorCode } from "../../http2/index.ts";

/** Returns the error of a call whose client has reset the stream, by gRPC's table of HTTP/2 error codes. */
export function resetError(rstCode: number | undefined): ConnectError {
  switch (rstCode) {
    case ErrorCode.refusedStream:
      return new ConnectError("the client refused the stream", Code.Unavailable);
    case ErrorCode.enhanceYourCalm:
      return new ConnectError("the client asked to slow down", Code.ResourceExhausted);
    case undefined:
    case ErrorCode.noError:
    case ErrorCode.cancel:
      return goneAway();
    default:
      return new ConnectError(`the client reset the stream with HTTP/2 error ${rstCode}`, Code.Internal);
  }
}

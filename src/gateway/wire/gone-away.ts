import { constants } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";

/** Why a call ends whose client has closed the connection. */
export function goneAway(): ConnectError {
  return new ConnectError("the client has gone away", Code.Canceled);
}

/** Why a call ends whose HTTP/2 stream the client has reset: what that means to the call, by gRPC's table of HTTP/2 error codes. */
export function resetError(rstCode: number | undefined): ConnectError {
  switch (rstCode) {
    case constants.NGHTTP2_REFUSED_STREAM:
      return new ConnectError("the client refused the stream", Code.Unavailable);
    case constants.NGHTTP2_ENHANCE_YOUR_CALM:
      return new ConnectError("the client asked to slow down", Code.ResourceExhausted);
    case undefined:
    case constants.NGHTTP2_NO_ERROR:
    case constants.NGHTTP2_CANCEL:
      return goneAway();
    default:
      return new ConnectError(`the client reset the stream with HTTP/2 error ${rstCode}`, Code.Internal);
  }
}

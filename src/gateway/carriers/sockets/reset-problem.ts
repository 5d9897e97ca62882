import { clientGone, HttpProblem } from "../index.ts";
import { ErrorCode } from "../../http2/index.ts";

/** Returns why a client has reset its stream, with the HTTP status of gRPC's code for the HTTP/2 error code. */
export function resetProblem(rstCode: number | undefined): HttpProblem {
  switch (rstCode) {
    case ErrorCode.refusedStream:
      return new HttpProblem("ERR_CLIENT_GONE", 503, "the client refused the stream");
    case ErrorCode.enhanceYourCalm:
      return new HttpProblem("ERR_CLIENT_GONE", 429, "the client asked to slow down");
    case undefined:
    case ErrorCode.noError:
    case ErrorCode.cancel:
      return clientGone();
    default:
      return new HttpProblem("ERR_CLIENT_GONE", 500, `the client reset the stream with HTTP/2 error ${rstCode}`);
  }
}

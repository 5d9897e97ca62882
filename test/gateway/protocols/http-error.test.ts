import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { HttpProblem } from "../../../src/gateway/carriers/index.ts";
import { httpError } from "../../../src/gateway/protocols/http-error.ts";

test.each([
  { httpStatus: 400, code: Code.InvalidArgument },
  { httpStatus: 408, code: Code.InvalidArgument },
  { httpStatus: 413, code: Code.ResourceExhausted },
  { httpStatus: 414, code: Code.ResourceExhausted },
  { httpStatus: 431, code: Code.ResourceExhausted },
])("a problem of status $httpStatus has the code $code", ({ httpStatus, code }) => {
  const error = httpError(new HttpProblem("ERR_HTTP_INVALID", httpStatus, "as said"));
  expect(error).toMatchObject({ code, rawMessage: "as said", errorCode: "ERR_HTTP_INVALID" });
});

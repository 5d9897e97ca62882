import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { HttpProblem } from "../../src/http/exchange/index.ts";
import { errorCodeOf } from "../../src/protobuf/call-errors.ts";
import { httpError } from "../../src/protocols/http-error.ts";
import { httpStatusOf } from "../../src/protocols/rest/rules/index.ts";

test.each([
  { name: "the default code and status", more: {}, code: Code.ResourceExhausted, httpStatus: 431 },
  { name: "a specified status", more: { httpStatus: 417 }, code: Code.ResourceExhausted, httpStatus: 417 },
  {
    name: "a specified code and status",
    more: { code: "Internal" as const, httpStatus: 502 },
    code: Code.Internal,
    httpStatus: 502,
  },
])("httpError() sets $name in the error", ({ more, code, httpStatus }) => {
  const error = httpError(new HttpProblem("ERR_HEADER_TOO_LARGE", "as said", more));
  expect(error).toMatchObject({ code, rawMessage: "as said" });
  expect([errorCodeOf(error), httpStatusOf(error)]).toEqual(["ERR_HEADER_TOO_LARGE", httpStatus]);
});

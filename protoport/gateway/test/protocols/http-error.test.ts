import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { HttpProblem } from "../../src/http/exchange/index.ts";
import { errorCodeOf } from "../../src/protobuf/call-errors.ts";
import { httpError } from "../../src/protocols/http-error.ts";
import { httpStatusOf } from "../../src/protocols/rest/rules/index.ts";

test.each([
  ["the default code and status", {}, Code.ResourceExhausted, 431],
  ["a specified status", { httpStatus: 417 }, Code.ResourceExhausted, 417],
  ["a specified code and status", { code: "Internal" as const, httpStatus: 502 }, Code.Internal, 502],
])("httpError() sets %s in the error", (_name, more, code, httpStatus) => {
  const error = httpError(new HttpProblem("ERR_HEADER_TOO_LARGE", "as said", more));
  expect(error).toMatchObject({ code, rawMessage: "as said" });
  expect([errorCodeOf(error), httpStatusOf(error)]).toEqual(["ERR_HEADER_TOO_LARGE", httpStatus]);
});

import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { errorCodeOf, problem, withMessage } from "../../src/protobuf/call-errors.ts";
import { httpStatusOf } from "../../src/protocols/rest/rules/index.ts";

const cause = new TypeError("why");

test.each([
  ["the default code and HTTP status", {}, Code.InvalidArgument, 415],
  ["another code and its standard HTTP status", { code: Code.Unimplemented }, Code.Unimplemented, 501],
  ["the default code and another HTTP status", { httpStatus: 422, cause }, Code.InvalidArgument, 422],
])("problem() sets %s, and withMessage() keeps them", (_name, more, code, httpStatus) => {
  const error = problem("ERR_CONTENT_TYPE", "one", more);
  expect([error.rawMessage, error.cause]).toEqual(["one", "cause" in more ? cause : undefined]);
  for (const copy of [error, withMessage(error, "another")])
    expect([copy.code, httpStatusOf(copy), errorCodeOf(copy)]).toEqual([code, httpStatus, "ERR_CONTENT_TYPE"]);
  expect(withMessage(error, "another").rawMessage).toBe("another");
});

test.each([undefined, "ERR_NOTHING_OF_OURS", "toString", "ERR_OPTIONS", 7])(
  "an error with the unknown errorCode %s has the standard HTTP status",
  (errorCode) =>
    expect(httpStatusOf(Object.assign(new ConnectError("no", Code.InvalidArgument), { errorCode }))).toBe(400),
);

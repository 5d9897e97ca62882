import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { errorCodeOf, problem, withMessage } from "../../src/protobuf/call-errors.ts";
import { httpStatusOf } from "../../src/protocols/rest/rules/index.ts";

const cause = new TypeError("why");

test.each([
  { name: "the default code and HTTP status", more: {}, code: Code.InvalidArgument, httpStatus: 415 },
  {
    name: "another code and its standard HTTP status",
    more: { code: Code.Unimplemented },
    code: Code.Unimplemented,
    httpStatus: 501,
  },
  {
    name: "the default code and another HTTP status",
    more: { httpStatus: 422, cause },
    code: Code.InvalidArgument,
    httpStatus: 422,
  },
])("problem() sets $name, and withMessage() keeps them", ({ more, code, httpStatus }) => {
  const error = problem("ERR_CONTENT_TYPE", "one", more);
  expect([error.rawMessage, error.cause]).toEqual(["one", "cause" in more ? cause : undefined]);
  for (const copy of [error, withMessage(error, "another")]) {
    expect([copy.code, httpStatusOf(copy), errorCodeOf(copy)]).toEqual([code, httpStatus, "ERR_CONTENT_TYPE"]);
  }
  expect(withMessage(error, "another").rawMessage).toBe("another");
});

test.each([undefined, "ERR_NOTHING_OF_OURS", "toString", "ERR_OPTIONS", 7])(
  "an error with the unknown errorCode %s has the standard HTTP status",
  (errorCode) => {
    expect(httpStatusOf(Object.assign(new ConnectError("no", Code.InvalidArgument), { errorCode }))).toBe(400);
  },
);

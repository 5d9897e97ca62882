import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { errorCodeOf } from "../../../src/gateway/errors/index.ts";
import { errorWithHttpStatus, httpStatusOf, withMessage } from "../../../src/gateway/rest/index.ts";

test("an error with another message keeps its code, its HTTP status and its identifier", () => {
  const error = withMessage(errorWithHttpStatus("ERR_CONTENT_TYPE", "one", Code.InvalidArgument, 415), "another");
  expect(error).toMatchObject({ rawMessage: "another", code: Code.InvalidArgument });
  expect([httpStatusOf(error), errorCodeOf(error)]).toEqual([415, "ERR_CONTENT_TYPE"]);
});

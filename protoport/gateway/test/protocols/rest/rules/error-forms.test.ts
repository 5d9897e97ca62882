import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { errorFormats } from "../../../../src/protocols/rest/rules/error-forms.ts";

test.each([
  [402, "Payment Required"],
  [406, "Not Acceptable"],
  [412, "Precondition Failed"],
  [422, "Unprocessable Content"],
  [428, "Precondition Required"],
  [505, "HTTP Version Not Supported"],
  [499, undefined],
])("status %i has the title %j in problem details", (httpStatus, title) => {
  const parts = { code: "ABORTED", number: Code.Aborted, httpStatus, message: "m", details: [] };
  expect(errorFormats.problem.toJson(parts)["title"]).toBe(title);
});

import { expect, test } from "vitest";
import {
  checkErrors,
  documentedIn,
  matches,
  testsIn,
  unionIn,
} from "../../../../protoport/test/support/docs/check-errors.ts";
import { situations } from "../../../contract/situations.ts";
import { plantStoreTree } from "../../../support/source-files.ts";

const page = "docs/reference/errors.md";
const others = ["protoport/docs/reference/errors.md"];
const known = [page, ...others].flatMap(documentedIn);

const sources: ReadonlyMap<string, string> = new Map(
  plantStoreTree.files
    // A client's errors are not responses of this server.
    .filter((file) => !file.startsWith("plantstore/client/"))
    .map((file) => [file, plantStoreTree.textOf(file)]),
);

checkErrors({
  page,
  others,
  sources,
  tests: testsIn("test"),
  unions: [unionIn(sources, "plantstore/service/error-code.ts")],
});

const errors = Object.values(situations)
  .flat()
  .flatMap(({ name, want }) => (want.code === "ok" ? [] : [{ name, code: want.code, message: want.message ?? "" }]));

test.each(errors)("the error when the server $name is documented", ({ code, message }) => {
  const rows = known.filter((row) => matches(row.message, message));
  expect(rows.map(({ name: codeName }) => codeName.toLowerCase())).toContain(code);
});

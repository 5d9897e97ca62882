import { expect, test } from "vitest";
// oxfmt-ignore
import { checkErrors, documentedIn, matches, testsIn, unionIn
} from "../../../../protoport/test/support/docs/check-errors.ts";
import { situations } from "../../../contract/situations.ts";
import { plantStoreTree } from "../../../support/source-files.ts";

const page = "docs/reference/errors.md";
const known = [page, "protoport/docs/reference/errors.md"].flatMap(documentedIn);
const sources: ReadonlyMap<string, string> = new Map(
  plantStoreTree.files
    // A client's errors are not responses of this server.
    .filter((file) => !file.startsWith("plantstore/client/"))
    .map((file) => [file, plantStoreTree.textOf(file)]),
);

checkErrors({ page, sources, tests: testsIn("test"), unions: [unionIn(sources, "plantstore/service/error-code.ts")] });

const errors = Object.values(situations)
  .flat()
  .flatMap(({ name, want }) => (want.code === "ok" ? [] : [{ name, ...want, message: want.message ?? "" }]));

test.each(errors)("the error when the server $name is documented", ({ code, message, errorCode }) => {
  const rows = known.filter((row) => errorCode !== undefined && row.errorCodes.includes(errorCode));
  const documented = rows.filter((row) => row.message === undefined || matches(row.message, message));
  expect(documented.map(({ name: codeName }) => codeName.toLowerCase())).toContain(code);
});

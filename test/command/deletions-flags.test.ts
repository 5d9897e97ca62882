import { expect, test } from "vitest";
import { runCommand } from "../support/process/run-command.ts";

test.each([
  { name: "a date that does not exist", words: ["deletions", "--since", "2020-02-31"] },
  { name: "a month that does not exist", words: ["deletions", "--since", "2020-13-01"] },
  { name: "an hour that does not exist", words: ["deletions", "--since", "2020-01-31T25:00:00Z"] },
  { name: "a word instead of a time", words: ["deletions", "--since", "yesterday"] },
  { name: "text before a duration", words: ["deletions", "--since", "x24h"] },
  { name: "a number without a unit", words: ["deletions", "--since", "5"] },
  { name: "an id with a leading zero", words: ["deletions", "--plant", "01"] },
  { name: "an id of more than 64 bits", words: ["deletions", "--plant", "9223372036854775808"] },
])("$name is refused by deletions", async ({ words }) => {
  expect((await runCommand(words, { DATABASE_URL: "sqlite:plants.db" })).exitCode).toBe(2);
});

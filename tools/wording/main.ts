import { parseArgs } from "node:util";
import { forbiddenPhrases, wordingErrors } from "./check.ts";
import { drawTexts } from "./draw-texts.ts";
import { pageFiles, pageTexts, type PlacedText, sourceFiles, sourceTexts, testFiles } from "./project-texts.ts";

// Lists what people read in this project:
//
//   npx node tools/wording/main.ts --check        the phrases that docs/explanation/terms.md rules out, like npm test
//   npx node tools/wording/main.ts --messages     all messages of the program, similar ones next to each other
//   npx node tools/wording/main.ts --draw SEED    100 names with their declarations, 100 sentences of comments and
//                                                 docs, 50 messages and 50 complete names of tests, drawn by a seed

const { values } = parseArgs({
  options: { check: { type: "boolean" }, messages: { type: "boolean" }, draw: { type: "string" } },
});

function show({ kind, file, line, context, text }: PlacedText): string {
  const around = kind === "comment" && context !== "" ? `(after: ${context})` : context;
  return [...(kind === "docs" ? [context] : [text, around]), `${file}:${line}`]
    .filter((part) => part !== "")
    .join("\t");
}

if (values.check === true) {
  const errors = wordingErrors(forbiddenPhrases());
  for (const error of errors) console.log(error);
  process.exitCode = errors.length === 0 ? 0 : 1;
}
if (values.messages === true) {
  const messages = sourceTexts(sourceFiles(), false).filter(({ kind }) => kind === "message");
  const byContext = messages.toSorted((a, b) => a.context.localeCompare(b.context) || a.text.localeCompare(b.text));
  for (const message of byContext) console.log(show(message));
}
if (values.draw !== undefined) {
  const { draw: seed } = values;
  const sources = sourceTexts(sourceFiles(), false);
  const sentences = pageTexts(pageFiles()).filter(({ kind, text }) => kind === "docs" && text.split(" ").length >= 3);
  const comments = sources.filter(({ kind }) => kind === "comment");
  const groups = [
    { title: "name", count: 100, from: sources.filter(({ kind }) => kind === "name") },
    { title: "comment", count: 100, from: [...comments, ...sentences] },
    { title: "message", count: 50, from: sources.filter(({ kind }) => kind === "message") },
    {
      title: "test name",
      count: 50,
      from: sourceTexts(testFiles(), true).filter(({ kind, context }) => kind === "test name" && context !== "row"),
    },
  ];
  for (const { title, count, from } of groups) {
    console.log(`\n== ${title}`);
    for (const text of drawTexts(from, show, count, seed)) console.log(show(text));
  }
}

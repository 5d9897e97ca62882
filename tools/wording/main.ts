import { parseArgs } from "node:util";
import { discouragedPhrases, wordingWarnings } from "./check.ts";
import { projectFolder } from "../../protoport/tools/build/manifest.ts";
import { drawTexts } from "./draw-texts.ts";
import { subjectsOf, textsOfProjects } from "./other-projects.ts";
import { wordingFigures } from "./figures.ts";
import { pageFiles, pageTexts, type PlacedText, sourceFiles, sourceTexts, testFiles } from "./project-texts.ts";
import type { TextKind } from "./texts-of.ts";

// Lists what people read in this project:
//
//   npx node tools/wording/main.ts --check        the phrases that tools/wording/terms.md advises against
//   npx node tools/wording/main.ts --figures      how often texts have what makes them hard to read
//   npx node tools/wording/main.ts --messages     all messages of the program, similar ones next to each other
//   npx node tools/wording/main.ts --draw SEED    100 names with their declarations, 80 sentences of comments, 50 of docs,
//                                                 50 messages, 80 complete names of tests and 50 commit subjects,
//                                                 drawn by a seed
//
// With --anchors FOLDER, which has checkouts of other projects, as many of their texts are drawn and mixed in. The
// key, with each text's file, is written to stderr.

const { values } = parseArgs({
  options: {
    check: { type: "boolean" },
    figures: { type: "boolean" },
    messages: { type: "boolean" },
    draw: { type: "string" },
    anchors: { type: "string" },
  },
});

/** A kind of text, and the number of texts to draw. */
interface DrawnKind {
  readonly kind: TextKind;
  readonly count: number;
}

const drawnKinds: readonly DrawnKind[] = [
  { kind: "name", count: 100 },
  { kind: "comment", count: 80 },
  { kind: "docs", count: 50 },
  { kind: "message", count: 50 },
  { kind: "test name", count: 80 },
  { kind: "commit subject", count: 50 },
];

function show({ kind, file, line, context, text }: PlacedText): string {
  const around = kind === "comment" && context !== "" ? `(after: ${context})` : context;
  return [...(kind === "docs" ? [context] : [text, around]), `${file}:${line}`]
    .filter((part) => part !== "")
    .join("\t");
}

if (values.check === true) {
  for (const warning of wordingWarnings(discouragedPhrases())) console.log(warning);
}
if (values.figures === true) {
  for (const { name, value } of wordingFigures()) console.log(`${value.toFixed(1).padStart(6)} ${name}`);
}
if (values.messages === true) {
  const messages = sourceTexts(sourceFiles(), false).filter(({ kind }) => kind === "message");
  const byContext = messages.toSorted((a, b) => a.context.localeCompare(b.context) || a.text.localeCompare(b.text));
  for (const message of byContext) console.log(show(message));
}
if (values.draw !== undefined) {
  const ours = [
    ...sourceTexts(sourceFiles(), false),
    ...sourceTexts(testFiles(), true).filter(({ kind }) => kind === "test name"),
    ...pageTexts(pageFiles()),
    ...subjectsOf(projectFolder, "plantstore"),
  ];
  if (values.anchors === undefined) printDrawn(ours, values.draw);
  else printMixed([ours, textsOfProjects(values.anchors)], values.draw);
}

function printDrawn(texts: readonly PlacedText[], seed: string): void {
  for (const kind of drawnKinds) {
    console.log(`\n== ${kind.kind}`);
    for (const text of drawKind(texts, kind, seed)) console.log(show(text));
  }
}

function drawKind(texts: readonly PlacedText[], { kind, count }: DrawnKind, seed: string): PlacedText[] {
  return drawTexts(texts.filter(isDrawn(kind)), show, count, seed);
}

/** Prints texts with several origins in a random order, so that a reader does not see the origin of each text. */
function printMixed(sides: readonly PlacedText[][], seed: string): void {
  for (const drawnKind of drawnKinds) {
    const { kind } = drawnKind;
    const texts = sides.flatMap((side) => drawKind(side, drawnKind, seed));
    for (const [index, text] of drawTexts(texts, show, texts.length, `${seed}\0mixed`).entries()) {
      console.log(`${kind} ${index + 1}\t${kind === "docs" ? text.context : text.text}`);
      console.error(`${kind} ${index + 1}\t${text.file}:${text.line}`);
    }
  }
}

/** Returns whether a text is of a kind and long enough to be judged alone. */
function isDrawn(drawnKind: TextKind): (text: PlacedText) => boolean {
  return ({ kind, text, context }) =>
    kind === drawnKind &&
    (kind === "name" || text.split(" ").length >= 3) &&
    (kind !== "test name" || context !== "row");
}

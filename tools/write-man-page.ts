import type { Command } from "../src/command/command.ts";
import { commands } from "../src/command/run-command-line.ts";
import { formatFlag, usageOf } from "@protoport/command-line";
import { descriptionOf, namesOf } from "../src/command/setting-flags.ts";
import { type PlantSetting, settingGroups } from "../src/server/index.ts";

// Prints the man page from the same table as `plantstore --help`. `npm run generate` writes it to man/plantstore.1.

/** Returns the page in man(7) macros. */
export function manPage(): string {
  const parts = [
    '.TH PLANTSTORE 1 "" "" "Plant Store"',
    ".SH NAME",
    "plantstore \\- a plant store over gRPC, gRPC\\-Web, Connect and REST, on one port",
    ".SH SYNOPSIS",
    ...commands.flatMap((command) => [".P", escapeText(usageOf("plantstore", command))]),
    ".SH COMMANDS",
    ...commands.flatMap(section),
    ".SH SETTINGS",
    "By flag or by environment variable, with their defaults. A flag takes precedence over the variable.",
    ...settingGroups.flatMap(({ title, settings }) => [`.SS ${escapeText(title)}`, ...settings.flatMap(settingItem)]),
    ".SH EXIT STATUS",
    ...item("0", "success"),
    ...item("1", "failure"),
    ...item("2", "invalid usage"),
    ...item("74", "serve: the store has failed, and only a restart can fix it"),
    ...item("78", "invalid configuration"),
  ];
  return `${parts.join("\n")}\n`;
}

function section({ name, summary, operands = [], flags = {}, notes = [], settings }: Command): string[] {
  return [
    `.SS ${name}`,
    escapeText(`${summary.slice(0, 1).toUpperCase()}${summary.slice(1)}.`),
    ...operands.flatMap((operand) => item(operand.name, operand.about)),
    ...Object.entries(flags).flatMap(([flag, about]) => item(formatFlag(flag, about), about.about)),
    ...(settings === undefined ? [] : item("--SETTING VALUE", "a setting, see SETTINGS")),
    ...notes.flatMap((note, index) => [index === 0 ? ".P" : ".br", escapeText(note)]),
  ];
}

function settingItem(setting: PlantSetting): string[] {
  return item(namesOf(setting), descriptionOf(setting));
}

/** Returns a term in bold, with its meaning below it. */
function item(term: string, about: string): string[] {
  return [".TP", `.B ${escapeText(term)}`, escapeText(about)];
}

// In groff(7), a backslash starts an escape, \- is an ASCII hyphen, and a dot or a quote at the start of a line starts
// a request. Characters outside ASCII are escaped, because not every troff reads UTF-8.
function escapeText(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^[.']/, "\\&$&")
    .replaceAll(/[^\n -~]/g, (letter) => `\\[u${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

if (import.meta.main) process.stdout.write(manPage());

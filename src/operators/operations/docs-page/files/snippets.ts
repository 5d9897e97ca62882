// A request as a command for a shell, and as a program. They read the token from an environment variable, because
// shells keep a history of commands, and programs are shared.
import { element, folded, terminal } from "./element.js";
import type { ApiRequest } from "./request.js";

/** A request, and what else a program needs to know of it. */
export interface Call {
  readonly request: ApiRequest;
  readonly needsToken: boolean;
  readonly isStream: boolean;
}

/** Creates a box that shows requests as a command of curl, and as a program with fetch. */
export function snippetBox(): { readonly box: HTMLElement; readonly show: (call: Call) => void } {
  const [curl, fetching] = [terminal(), terminal()];
  curl.className += " command";
  fetching.className += " program";
  const show = (call: Call): void => {
    curl.textContent = writeCurl(call);
    fetching.textContent = writeFetch(call);
  };
  return { box: element("div", {}, curl, ...copyButton(curl), folded("With fetch", fetching)), show };
}

function copyButton(source: HTMLElement): HTMLElement[] {
  // Over plain http, browsers only offer the clipboard to pages of the same machine.
  if (!("clipboard" in navigator)) return [];
  const button = element("button", { type: "button", class: "quiet" }, "Copy");
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(source.textContent ?? "");
    button.textContent = "Copied";
  };
  button.addEventListener("click", () => void copy());
  return [button];
}

function writeCurl({ request: { method, url, headers, body }, needsToken, isStream }: Call): string {
  const parts = [`curl -i${isStream ? "N" : ""}`, `-X ${method}`];
  if (needsToken) parts.push('-H "Authorization: Bearer $TOKEN"');
  parts.push(...headers.map((field) => `-H ${quote(field.join(": "))}`));
  if (body !== undefined) parts.push(`--data-binary ${quote(typeof body === "string" ? body : `@${body.name}`)}`);
  return [...parts, quote(url)].join(" \\\n  ");
}

function writeFetch({ request: { method, url, headers, body }, needsToken, isStream }: Call): string {
  const fields = headers.map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  if (needsToken) fields.unshift("    Authorization: `Bearer ${process.env.TOKEN}`,");
  const file = body instanceof File ? JSON.stringify(body.name) : undefined;
  return [
    ...(file === undefined ? [] : ['import { readFile } from "node:fs/promises";\n']),
    `const response = await fetch(${JSON.stringify(url)}, {`,
    `  method: ${JSON.stringify(method)},`,
    ...(fields.length > 0 ? ["  headers: {", ...fields, "  },"] : []),
    ...(body === undefined
      ? []
      : [`  body: ${file === undefined ? JSON.stringify(body) : `await readFile(${file})`},`]),
    "});",
    "console.log(response.status);",
    isStream
      ? "for await (const text of response.body.pipeThrough(new TextDecoderStream())) console.log(text);"
      : "console.log(await response.text());",
  ].join("\n");
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

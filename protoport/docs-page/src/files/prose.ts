// Descriptions are CommonMark. The library marked parses a description into tokens, from which this module creates
// elements. HTML is never parsed, so text that looks like HTML is shown as text.
import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";
import type { Description } from "./description.js";
import { element, terminal } from "./element.js";
import { linkToName } from "./names.js";

/**
 * Shows CommonMark. Tables and bare URLs are also supported, because comments often contain them. Names from the
 * definition, as in `[Shelf][library.v1.Shelf]`, become links to views.
 */
export function prose(description: Description, text: string | undefined): HTMLElement[] {
  if (text === undefined || text === "") return [];
  const lexer = new Lexer({ gfm: true });
  // Comments in Google's definitions contain links such as `[text][name]`, of which only the text is shown.
  for (const [, name = ""] of text.matchAll(/\]\[([A-Za-z_][\w.]*)\]/g)) {
    lexer.tokens.links[name.toLowerCase()] = { href: linkToName(description, name) ?? "", title: null };
  }
  return ownTokens(lexer.lex(text)).flatMap(showBlock);
}

/** Narrows tokens to marked's own types. Other types do not occur, because no extensions are used. */
function ownTokens(tokens: readonly Token[]): MarkedToken[] {
  return tokens.filter((token): token is MarkedToken => token.type !== "");
}

function showBlock(token: MarkedToken): HTMLElement[] {
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "code":
      return [terminal(token.text)];
    case "hr":
      return [element("hr")];
    case "blockquote":
      return [element("blockquote", {}, ...ownTokens(token.tokens).flatMap(showBlock))];
    case "list":
      return [showList(token)];
    case "table":
      return [showTable(token)];
    // Headings are reserved for the page's structure.
    case "heading":
      return [element("p", {}, element("strong", {}, ...showInline(token.tokens)))];
    case "paragraph":
      return [element("p", {}, ...showInline(token.tokens))];
    default:
      return [element("p", {}, ...showInline([token]))];
  }
}

function showList({ ordered, start, items, loose }: Tokens.List): HTMLElement {
  const listItems = items.map(({ tokens }) =>
    element(
      "li",
      {},
      ...ownTokens(tokens).flatMap((token) =>
        loose || token.type !== "text" ? showBlock(token) : showInline([token]),
      ),
    ),
  );
  return ordered ? element("ol", { start: String(start) }, ...listItems) : element("ul", {}, ...listItems);
}

function showTable({ header, rows }: Tokens.Table): HTMLElement {
  const row = (name: "th" | "td", cells: readonly Tokens.TableCell[]): HTMLElement =>
    element("tr", {}, ...cells.map(({ tokens }) => element(name, {}, ...showInline(tokens))));
  const table = element("table", {}, row("th", header), ...rows.map((cells) => row("td", cells)));
  return element("div", { class: "wide", tabindex: "0" }, table);
}

function showInline(tokens: readonly Token[]): (Node | string)[] {
  return ownTokens(tokens).flatMap((token): (Node | string)[] => {
    switch (token.type) {
      case "codespan":
        return [element("code", {}, token.text)];
      case "strong":
      case "em":
      case "del":
        return [element(token.type, {}, ...showInline(token.tokens))];
      case "br":
        return [element("br")];
      case "link":
        return showLink(token.href, showInline(token.tokens));
      // An image becomes a link, because nothing is loaded from other hosts.
      case "image":
        return showLink(token.href, [token.text]);
      case "escape":
        return [token.text];
      case "text":
        return token.tokens === undefined ? [decodeEntities(token.text)] : showInline(token.tokens);
      default:
        return [token.raw];
    }
  });
}

/** Shows a link, or only its text if the target is missing or has a scheme that could run code. */
function showLink(target: string, text: readonly (Node | string)[]): (Node | string)[] {
  const href = decodeEntities(target);
  const isInternal = href.startsWith("/") || href.startsWith("#/");
  const isSafe = isInternal || (URL.canParse(href) && protocols.has(new URL(href).protocol));
  return isSafe ? [element("a", { href, rel: "noreferrer" }, ...text)] : [...text];
}

const protocols: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);

/** Replaces numeric entities and the most common named entities with their characters. */
function decodeEntities(text: string): string {
  return text.replaceAll(
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|nbsp));/g,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return entities[String(name)] ?? whole;
      const codePoint = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      return codePoint > 0 && codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : "\u{fffd}";
    },
  );
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u{a0}" };

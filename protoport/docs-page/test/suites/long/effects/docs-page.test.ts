import { expect, test } from "vitest";
import { compareValues, Differs, type EffectsOf } from "../../../../../testing/src/comparison.ts";
import { createGateway } from "../../../../../gateway/src/index.ts";
import { createDocsPage, type DocsPageOptions } from "../../../../src/docs-page.ts";

// Serves the docs page with two values for each option, and compares the responses.

function refuse(): never {
  throw new Error("refused");
}

const usual: DocsPageOptions = { document: () => '{"openapi":"3.1.0"}', open: true };

function compareResponses(path: string, off: Partial<DocsPageOptions>, on: Partial<DocsPageOptions>): Promise<Differs> {
  return compareValues(off, on, async (options) => {
    const endpoints = createDocsPage({ ...usual, ...options });
    const { fetch } = createGateway({ routes: () => undefined, endpoints, admit: refuse, onFault: () => undefined });
    const response = await fetch(new Request(`http://a${path}`));
    return [response.status, await response.text()];
  });
}

const effects: EffectsOf<DocsPageOptions> = {
  document: () => compareResponses("/openapi.json", {}, { document: () => '{"openapi":"3.1.1"}' }),
  open: () => compareResponses("/docs", { open: false }, { open: true }),
};

test.each(Object.entries(effects))("the option %s of createDocsPage has an effect", async (_, comparison) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});

/**
 * The entry `@plantstore/docs-page`: endpoints for an OpenAPI document, and for a page to read it and send requests.
 */
export { createDocsPage, type DocsPageOptions } from "./docs-page.ts";
export { type SerializedDocument, serializeDocument } from "./serialized-document.ts";

/**
 * The entry `@protoport/docs-page`. Creates endpoints for an OpenAPI document, and for a page that shows the document
 * and sends requests.
 */
export { createDocsPage, type DocsPageOptions } from "./docs-page.ts";
export { type SerializedDocument, serializeDocument } from "./serialized-document.ts";

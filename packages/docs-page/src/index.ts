/**
 * The endpoints of an OpenAPI document, and of a page on which people read it and send requests: the entry
 * `@plantstore/docs-page`.
 */
export { createDocsPage, type DocsPageOptions } from "./docs-page.ts";

import type { ErrorForm } from "./error-forms.ts";
import type { RestProfile, RestServiceOptions } from "./service-options.ts";

/** A profile's options. The user's option with the same name overrides a profile's option. */
interface ProfileOptions {
  readonly service: Omit<RestServiceOptions, "profile">;
  readonly errors: ErrorForm;
  /** The content type for responses and errors. */
  readonly contentType: string;
  /** Whether fields with default values are written, like `alwaysEmitImplicit` in `jsonOptions`. */
  readonly alwaysEmitImplicit: boolean;
}

const json = "application/json";

/** The profiles by name. */
export const restProfiles: Readonly<Record<RestProfile, ProfileOptions>> = {
  strict: { service: {}, errors: "status", contentType: json, alwaysEmitImplicit: false },
  google: {
    service: {
      sameValueAsPath: true,
      arrayStreams: true,
      partialResponses: true,
      // The system parameters for Google's APIs, except access_token, which must not be in a URL.
      ignoredQueryParameters: ["alt", "$alt", "prettyPrint", "$prettyPrint", "key", "$.xgafv", "x-goog-*"],
    },
    errors: "google",
    contentType: json,
    alwaysEmitImplicit: false,
  },
  "grpc-gateway": {
    service: {
      lenient: true,
      ignoreBodies: true,
      mapsInQuery: true,
      structsInQuery: true,
      goDurations: true,
      protobufBodies: true,
      prettyJson: true,
      grpcMetadata: true,
      streamInResults: true,
      jsonClientStreams: true,
      updateMaskFromBody: true,
    },
    errors: "status",
    contentType: json,
    alwaysEmitImplicit: true,
  },
  envoy: {
    service: { lenient: true, ignoreBodies: true, jsonClientStreams: true, arrayStreams: true },
    errors: "status",
    contentType: json,
    alwaysEmitImplicit: false,
  },
  a2a: {
    // In A2A, unknown fields are ignored (§5.7), and clients repeat the path fields in the body.
    service: { lenient: true, sameValueAsPath: true, eventStreams: true },
    errors: "google",
    // The content type in A2A §11.1.
    contentType: "application/a2a+json",
    alwaysEmitImplicit: false,
  },
};

/** Tokens in secrets of type kubernetes.io/service-account-token have this issuer, and no end. */
export const LEGACY_ISSUER = 'kubernetes/serviceaccount';

/** What strategies and admission ask of the server around them. */
import type { Listed } from '../../authorization/rules-review.ts';
import type { Authorizer } from '../../authorization/authorization.ts';
import type { Identity } from '../../request/identity.ts';
import type { PolicyRule } from '../../authorization/rbac.ts';
import type { TokenChain } from '../../authentication/token-chain.ts';
import type { TokenSigner } from '../../authentication/token-signer.ts';
import type { Relay } from '../../webhook/target.ts';
import type { AllocationCounts } from '../../metrics/allocation-counts.ts';
import type { HealthProbe } from '../../webhook/health-probe.ts';

/** What virtual kinds ask: who may do what, and whose token is which. */
export interface Services {
  /** Decides at once: who has to be asked first counts as one that denies. */
  readonly authorize: Authorizer;
  /** For `whenDecided`. */
  readonly decide: Authorizer;
  /** Names of roles that its bindings name and that are not there. */
  readonly missingRoles: (identity: Identity, namespace: string) => readonly string[];
  readonly rulesOf: (identity: Identity, namespace: string) => readonly PolicyRule[];
  /** The same of all authorizers, as far as they can list what they allow. */
  readonly listRules: (identity: Identity, namespace: string) => Listed;
  readonly signer: TokenSigner | null;
  /** Whom a token stands for, among those it is for; without audiences for this server. */
  readonly reviewToken: TokenChain['review'];
  /** Why a token stands for nobody. */
  readonly whyNobody: TokenChain['whyNobody'];
  /** The way to kubelets and pods; null where there is none. */
  readonly relay: Relay | null;
  /** Asks the other programs of the control plane how they are. */
  readonly probe: HealthProbe | null;
  /** What Services were given and refused. */
  readonly allocations: AllocationCounts;
  /** Networks of Services' addresses, one or one of each family; the first is the usual one. */
  serviceRanges: readonly string[];
}

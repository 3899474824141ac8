// Stands for KEDA's clients of secret stores outside the cluster, whose libraries take minutes to build: every call fails.
package resolver

import (
	"errors"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
)

var errNoStore = errors.New("this build of KEDA has no secret stores outside the cluster")

type noStore struct{}

func NewHashicorpVaultHandler(...any) noStore   { return noStore{} }
func NewAzureKeyVaultHandler(...any) noStore    { return noStore{} }
func NewGCPSecretManagerHandler(...any) noStore { return noStore{} }
func NewAwsSecretManagerHandler(...any) noStore { return noStore{} }

func (noStore) Initialize(...any) error     { return errNoStore }
func (noStore) Read(...any) (string, error) { return "", errNoStore }
func (noStore) Stop()                       {}

func (noStore) ResolveSecrets([]kedav1alpha1.VaultSecret) ([]kedav1alpha1.VaultSecret, error) {
	return nil, errNoStore
}

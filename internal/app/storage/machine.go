package storage

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
)

// ShowSettings is what show_settings takes.
type ShowSettings struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"the folder; the server's own when it is left out"`
}

// SettingsShown are the settings of a new session.
type SettingsShown struct {
	app.Fresh
	Workspace string           `json:"workspace"`
	Settings  []app.SettingRow `json:"settings"`
	Ignored   []app.IgnoredRow `json:"ignored,omitempty"` // what files say that doesn't count
}

func showSettings(ctx context.Context, c *app.Call, f app.Fresh, in *ShowSettings) (*SettingsShown, error) {
	ws, err := c.Workspaces.Workspace(ctx, in.Workspace)
	if err != nil {
		return nil, input.At("workspace", err)
	}
	rows, ignored, err := c.Workspaces.SettingRows(ctx, ws)
	if rows == nil {
		rows = []app.SettingRow{}
	}
	return &SettingsShown{f, ws, rows, ignored}, err
}

// Doctor is what doctor takes.
type Doctor struct{}

// Findings are what the machine gives and what is missing.
type Findings struct {
	app.Fresh
	Findings []app.Finding `json:"findings"`
}

func doctor(ctx context.Context, c *app.Call, f app.Fresh, _ *Doctor) (*Findings, error) {
	if c.Doctor == nil {
		return nil, belay.Errorf(belay.CodeUnavailable, "this process can't look at its machine").WithHint("belay doctor")
	}
	return &Findings{f, append([]app.Finding{}, c.Doctor(ctx)...)}, nil
}
